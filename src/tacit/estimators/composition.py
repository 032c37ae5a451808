"""What a pipeline of named steps can do whatever the steps are: scikit-learn's interface to them."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch, get_tags

from tacit.estimators.stateless import is_skipped


class NamedSteps(BaseEstimator):
    """Steps as parameters: by name, by number, in part. `steps_` are the fitted ones."""

    steps: Any
    steps_: list[tuple[str, Any]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the pipeline and, as `step__parameter`, of its steps."""
        params = {name: getattr(self, name) for name in self._get_param_names()}
        for name, step in self.steps if deep else ():
            params[name] = step
            if hasattr(step, "get_params"):
                params |= {f"{name}__{key}": value for key, value in step.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the pipeline or, as `step__parameter`, of a step; `step=...` puts another in its place."""
        if "steps" in params:
            self.steps = params.pop("steps")
        names = [name for name, _ in self.steps]
        given = {name: params.pop(name) for name in names if name in params}
        if given:
            self.steps = [(name, given.get(name, step)) for name, step in self.steps]
        return super().set_params(**params)

    @property
    def _known(self) -> Sequence[tuple[str, Any]]:
        """The fitted steps, or those that were given."""
        return getattr(self, "steps_", self.steps)

    @property
    def _last(self) -> Any:
        return self._known[-1][1]

    @property
    def named_steps(self) -> Bunch:
        """The steps by name: fitted ones after `fit`."""
        return Bunch(**dict(self._known))

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int | str | slice) -> Any:
        """A step, by its number or name, or a pipeline of some of them."""
        if not isinstance(place, slice):
            return self.named_steps[place] if isinstance(place, str) else self._known[place][1]
        if place.step not in (None, 1):
            raise ValueError("a pipeline can be cut by a slice with a step of 1 only")
        part = type(self)(**(self.get_params(deep=False) | {"steps": self.steps[place], "shares": None}))
        for name in ("plan_", "guarantee_", "_stateless"):
            if hasattr(self, name):
                setattr(part, name, getattr(self, name))
        if hasattr(self, "steps_"):
            part.steps_ = self.steps_[place]
        return part

    @property
    def n_features_in_(self) -> int:
        """Columns that the first step has seen."""
        return self._first.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, if they have any."""
        return self._first.feature_names_in_

    @property
    def _first(self) -> Any:
        return next(step for _, step in self._known if not is_skipped(step))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of what comes out of the last step that has any."""
        names = input_features
        for _, step in self._known:
            if hasattr(step, "get_feature_names_out"):
                names = step.get_feature_names_out(names)
        return np.asarray(names, dtype=object)

    def set_output(self, *, transform: Any = None) -> Self:
        """What `transform` returns: see scikit-learn."""
        for _, step in [*self.steps, *getattr(self, "steps_", ())]:
            if hasattr(step, "set_output"):
                step.set_output(transform=transform)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "steps_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        last = self._known[-1][1] if self._known else None
        if last is not None and hasattr(last, "__sklearn_tags__"):
            of_last = get_tags(last)
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags"):
                setattr(tags, name, getattr(of_last, name))
        return tags
