"""Models of other l1 radii from the moments of a study that is done: functions of what was released, at no cost."""

from collections.abc import Iterable, Mapping

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.federated.protocols.marginals.coordinator import Moments
from tacit.federated.units import Units, in_users_units
from tacit.privacy import checks


class PathMixin:
    """`l1_path` of an estimator that keeps the moments of its study."""

    _moments: Moments | None = None
    units_: Mapping[str, Units]

    def l1_path(self, radii: Iterable[float]) -> tuple[Floats, Floats]:
        """Models of other l1 radii, from the moments that `fit` released; this costs no budget.

        Of the protocol "marginals", after `fit` in the same process: model files do not hold moments. To choose a
        radius, let the study hold out people (`Evaluation`).

        Parameters
        ----------
        radii : iterable of float
            The radii, in any order.

        Returns
        -------
        coefs : ndarray of shape (n_radii, n_features), or (n_radii, n_classes, n_features) for more than two classes
            All parties' columns, in the order of the parties.
        intercepts : ndarray of shape (n_radii,) or (n_radii, n_classes)
        """
        check_is_fitted(self)
        if self._moments is None:
            raise ValueError(
                "l1_path needs the moments of a study, which the protocol 'marginals' has, and only after fit: a model"
                " that was loaded has none"
            )
        found = [self._moments.at(checks.positive("radii", radius)) for radius in radii]
        if hasattr(self, "units_"):
            found = [in_users_units(coefs, intercept, self.units_) for coefs, intercept in found]
        coefs = [np.concatenate(list(parts.values()), axis=-1) for parts, _ in found]
        return np.array(coefs), np.array([intercept for _, intercept in found])
