"""Parameters and released numbers as JSON values, and back.

None, truth values, texts, whole numbers, finite numbers and lists are themselves. Everything else is an object with one
key, which says what it is: `{"array": ...}`, `{"tuple": [...]}`, `{"float": "inf"}`. So a new kind of value can be
added without changing the meaning of any other.

What holds: what is read makes arrays of numbers and texts, and objects of the few classes in `OPTIONS`. Nothing else
names code. Such an object keeps its parameters and does nothing else when it is made; what they say is checked with the
model that has it.
"""

from collections.abc import Callable
from dataclasses import asdict
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from tacit.federated import Evaluation, FeatureSharing, HeldOut, Marginals, Sketching
from tacit.federated.units import Units
from tacit.modelfiles.arrays import Json, fields, read_array, read_float, shape_of, written_array, written_float
from tacit.modelfiles.rowsteps import NUMBER_KINDS, ROW_STEPS, read_function, read_kind, written_function
from tacit.modelfiles.table import Column
from tacit.preprocessing.coding import Coded
from tacit.privacy import Budget, Guarantee, Plan, Promise, Release, Unit
from tacit.privacy.texts import HARMLESS, harmless
from tacit.solvers import SOLVERS
from tacit.solvers.pca import PCA_SOLVERS

_FEDERATED = (Evaluation, FeatureSharing, Marginals, Sketching)
OPTIONS: dict[str, type] = {kind.__name__: kind for kind in (*SOLVERS.values(), *PCA_SOLVERS.values(), *_FEDERATED)}
"""Classes of parameters that are objects, such as `solver=Dual(batch_size=100)`, by the name that a file has."""

_LINEAR = frozenset({"bounds", "trust_dtypes"})
LATER: dict[str, frozenset[str]] = {
    "LogisticRegression": _LINEAR | {"l1_ratio", "class_weight"},
    "LinearSVC": _LINEAR | {"class_weight"},
    **dict.fromkeys(("LinearRegression", "Ridge", "Lasso", "ElasticNet"), _LINEAR),
    **dict.fromkeys(("PCA", "PrivateScaler"), _LINEAR),
    **dict.fromkeys(
        ("FederatedLasso", "FederatedLogisticRegression", "FederatedLinearSVC"), frozenset({"align", "evaluation"})
    ),
    "Coordinate": frozenset({"smoothness_share", "coef_init", "intercept_init", "rescale", "keep_path"}),
    "Dual": frozenset({"averaging", "least_penalty", "damping"}),
    "FeatureSharing": frozenset({"sampling", "tau", "blocks", "choosing", "seed"}),
    "Marginals": frozenset({"products"}),
    "Power": frozenset({"n_iter"}),
    "Stochastic": frozenset({"n_iter", "sampling_rate", "step_size"}),
    "VarianceReduced": frozenset({"n_snapshots", "n_inner", "sampling_rate", "step_size", "clip"}),
    "Sgd": frozenset({"clip", "learning_rate", "momentum", "averaging"}),
    **{kind.__name__: frozenset(signature(kind).parameters) for kind in ROW_STEPS},
}
"""Parameters that came after the first files, by class: a file without them means their defaults.

Of scikit-learn's classes a file has those alone that are not the default: other versions may have others.
"""

_CSR = ("data", "indices", "indptr")
_MOST_RELEASES = 5_000  # that a plan may tell apart


def parameters_of(kind: type) -> frozenset[str]:
    """What a file holds of an object of this class."""
    return frozenset(signature(kind).parameters)


def told(model: Any) -> dict[str, Any]:
    """The parameters that a file holds of a model: of scikit-learn's classes those that are not the default."""
    parameters: dict[str, Any] = model.get_params(deep=False)
    if not isinstance(model, ROW_STEPS):
        return parameters
    default = type(model)().get_params(deep=False)
    return {name: value for name, value in parameters.items() if value is not default[name]}


def written(value: Any, where: str) -> Json:
    """A value as JSON can carry it; `where` is its name, for the error about what cannot be written."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return written_float(value)
    if isinstance(value, list):
        return [written(part, where) for part in value]
    if type(value) is tuple:
        return {"tuple": [written(part, where) for part in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: written(part, f"{where}[{key!r}]") for key, part in value.items()}}
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):  # JSON has no keys that are numbers
        return {"items": [[written(key, where), written(part, where)] for key, part in value.items()]}
    if isinstance(value, Column):
        return {"column": {key: written(part, where) for key, part in value.to_dict().items()}}
    if isinstance(value, Coded):
        return {"coded": {key: written(part, where) for key, part in vars(value).items()}}
    if isinstance(value, Units):
        return {"units": value.to_dict()}
    if isinstance(value, HeldOut):
        return {"held_out": {name: written(part, f"{where}.{name}") for name, part in vars(value).items()}}
    if isinstance(value, Promise):
        return {"plan": _written_plan(value)}
    if OPTIONS.get(type(value).__name__) is type(value):
        names = sorted(parameters_of(type(value)))
        told = {name: written(getattr(value, name), f"{where}__{name}") for name in names}
        return {"options": {"class": type(value).__name__, "parameters": told}}
    if issparse(value):
        matrix: Any = value
        matrix = matrix.tocsr()
        return {"csr": {"shape": list(matrix.shape)} | {part: written(getattr(matrix, part), where) for part in _CSR}}
    if isinstance(value, type) and value in NUMBER_KINDS.values():
        return {"kind": value.__name__}
    if isinstance(value, np.ufunc) and (name := written_function(value)) is not None:
        return {"function": name}
    if hasattr(value, "__array__"):
        return {"array": written_array(np.asarray(value), where)}
    raise TypeError(
        f"{where} cannot be written to a model file: it is of type {type(value).__name__}, and a file holds numbers,"
        f" texts, None, arrays, lists, tuples and dicts of these, and {', '.join(OPTIONS)}"
    )


def read(value: Json, where: str) -> Any:
    """The value that `written` wrote; anything else raises ValueError."""
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list):
        return [read(part, where) for part in value]
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"{where} is not a value: an object has one key, which says what it is")
    ((kind, content),) = value.items()
    if kind not in _READERS:
        raise ValueError(f"{where} is of an unknown kind; known are {', '.join(_READERS)}")
    return _READERS[kind](content, where)


def _read_csr(content: Json, where: str) -> csr_array:
    told = fields(content, {"shape", *_CSR}, where)
    shape = shape_of(told["shape"], where)
    data, indices, indptr = (read(told[part], where) for part in _CSR)
    flat = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
    if not flat or data.dtype.kind != "f" or indices.dtype.kind != "i" or indptr.dtype.kind != "i" or len(shape) != 2:
        raise ValueError(f"{where} must have a data array of numbers and two arrays of whole numbers")
    matrix = csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        raise ValueError(f"{where} must have the entries of each row in order, each once")
    return matrix


def _read_options(content: Json, where: str) -> Any:
    told = fields(content, {"class", "parameters"}, where)
    kind = OPTIONS.get(told["class"]) if isinstance(told["class"], str) else None
    if kind is None:
        raise ValueError(f"{where} must be of one of the classes {', '.join(OPTIONS)}")
    parameters = fields(told["parameters"], parameters_of(kind), where, LATER.get(kind.__name__, frozenset()))
    return kind(**{name: read(value, f"{where}__{name}") for name, value in parameters.items()})


def _written_plan(plan: Promise) -> Json:
    budget = plan.budget
    views = {"views": [list(view) for view in plan.plan.views]} if plan.plan.views else {}
    return views | {
        "epsilon": written(budget.epsilon, "plan_"),
        "delta": budget.delta,
        "adjacency": budget.adjacency,
        "releases": [asdict(release) for release in plan.plan.releases],
        "multipliers": [float(multiplier) for multiplier in plan.multipliers],
    }


def read_plan(value: Json, where: str, guarantee: Guarantee) -> Promise:
    """A plan; a file says whom it protects, and what ran, in the guarantee only."""
    if not isinstance(value, dict) or set(value) != {"plan"}:
        raise ValueError(f"{where} must be a plan")
    known = {"epsilon", "delta", "adjacency", "releases", "multipliers", "views"}
    told = fields(value["plan"], known, where, frozenset({"views"}))
    budget = Budget(read(told["epsilon"], where), told["delta"], told["adjacency"])
    releases, multipliers = told["releases"], told["multipliers"]
    if not isinstance(releases, list) or not isinstance(multipliers, list) or len(releases) != len(multipliers):
        raise ValueError(f"{where} must list its releases, and as many multipliers")
    if len(releases) > _MOST_RELEASES:
        raise ValueError(f"{where} has more than {_MOST_RELEASES:,} kinds of releases")
    if not all(isinstance(z, int | float) and not isinstance(z, bool) and z >= 0 for z in multipliers):
        raise ValueError(f"{where} must have multipliers of at least 0")
    names = set(Release.__dataclass_fields__)
    views = _read_views(told.get("views", []), len(releases), where)
    plan = Plan(*(Release(**fields(release, names, where, frozenset({"tail"}))) for release in releases), views=views)
    if not all(harmless(release.name) for release in plan.releases):
        raise ValueError(f"{where} must have releases with names {HARMLESS}")
    unit = Unit("row", guarantee.n_units, disclosed=guarantee.disclosed)
    return Promise(plan, budget, unit, guarantee.solver, tuple(map(float, multipliers)))


def _read_views(content: Json, size: int, where: str) -> list[list[float]]:
    """The parts of releases that count in each view: a number for each release."""
    if not isinstance(content, list) or len(content) > _MOST_RELEASES:
        raise ValueError(f"{where} must list its views, {_MOST_RELEASES:,} at most")
    for view in content:
        if not isinstance(view, list) or len(view) != size or not all(type(part) in (int, float) for part in view):
            raise ValueError(f"{where} must have views with a number for each of its releases")
    return content


def _read_column(content: Json, where: str) -> Column:
    told = fields(content, set(Column.__dataclass_fields__), where)
    return Column(**{name: read(part, where) for name, part in told.items()})


def _read_coded(content: Json, where: str) -> Coded:
    told = fields(content, set(Coded.__dataclass_fields__), where)
    return Coded(**{name: read(part, where) for name, part in told.items()})


def _read_units(content: Json, where: str) -> Units:
    return Units.from_dict(fields(content, {"columns", "found", "numbers"}, where))


def _read_held_out(content: Json, where: str) -> HeldOut:
    told = fields(content, set(HeldOut.__dataclass_fields__), where)
    return HeldOut(**{name: read(part, where) for name, part in told.items()})


def _read_tuple(content: Json, where: str) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise ValueError(f"{where} must hold a list")
    return tuple(read(part, where) for part in content)


def _read_dict(content: Json, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{where} must hold an object")
    return {key: read(part, where) for key, part in content.items()}


def _read_items(content: Json, where: str) -> dict[Any, Any]:
    paired = isinstance(content, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in content)
    if not paired or not all(type(key) in (str, int) for key, _ in content):
        raise ValueError(f"{where} must hold pairs of a text or a whole number and a value")
    found = {key: read(part, where) for key, part in content}
    if len(found) < len(content):
        raise ValueError(f"{where} has a key twice")
    return found


_READERS: dict[str, Callable[[Json, str], Any]] = {
    "array": read_array,
    "coded": _read_coded,
    "column": _read_column,
    "csr": _read_csr,
    "dict": _read_dict,
    "float": read_float,
    "function": read_function,
    "held_out": _read_held_out,
    "items": _read_items,
    "kind": read_kind,
    "options": _read_options,
    "tuple": _read_tuple,
    "units": _read_units,
}
