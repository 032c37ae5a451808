"""`save` and `load`: a fitted model as JSON, and back.

A document has a format, a version, what it was written by (for people only) and a model. A model has a class, its
parameters, its released attributes, its guarantee, and the models that it is made of (`parts`). Every key is required
and none may be added, so that a later version is a later number and never a guess.
"""

import json
import os
import platform
import secrets
import stat
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import tacit
from tacit.estimators.stateless import is_skipped
from tacit.modelfiles import claims, values
from tacit.modelfiles.arrays import Json, check_texts, fields
from tacit.modelfiles.classes import CLASSES, Entry
from tacit.modelfiles.pipelines import STEPS
from tacit.modelfiles.pipelines import given as given_steps
from tacit.modelfiles.rowsteps import ONLY_STEPS, Passthrough, made_ready
from tacit.privacy import Guarantee, checks

FORMAT, VERSION = "tacit model", 1
MOST_BYTES = 2**30
"""A file that is longer is refused before it is read, unless `load` is told otherwise."""

MOST_VALUES = 1_000_000
"""Outside of arrays of numbers: a text of one byte can become an object of a hundred."""

_LONGEST_MESSAGE = 300
_MAY_FIND_NOTHING = ("PrivateEncoder", "PrivateScaler")  # where all is declared there is nothing to guarantee


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that executes nothing when it is read.

    The file is JSON: the class, the parameters, the released attributes (arrays in base64) and the guarantee. All of it
    is public or was released, so that who may see the model may see the file. `random_state` is not written: with it
    the noise could be subtracted; the guarantee says that there was one. Nor is `directory` of a federated model.

    Parameters
    ----------
    model : estimator
        A fitted estimator or transformer of Tacit, or a federated model.
    path : path
        Of the file. It is written whole or not at all. A file that is there is replaced and keeps its mode; a link is
        replaced itself, and what it points to stays as it is.

    Raises
    ------
    TypeError
        If the model is of another class, or a parameter cannot be written.
    ValueError
        If the model is not fitted (scikit-learn's `NotFittedError`), or `load` would not take it: an attribute was
        changed after the fit, for instance.

    Examples
    --------
    >>> import tacit
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = tacit.LogisticRegression(epsilon=1.0).fit(X, y)
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> tacit.save(model, path)
    >>> again = tacit.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    >>> again.guarantee_ == model.guarantee_
    True
    """
    document = {"format": FORMAT, "version": VERSION, "written_by": _versions(), "model": _written(model)}
    text = json.dumps(document, indent=1, allow_nan=False)
    _read(text)  # what would be refused is not written
    write_whole(Path(path), f"{text}\n".encode())


def load(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> Any:
    """The fitted model that `save`, `tacit fit` or `tacit federate coordinator` wrote.

    Nothing in the file is executed, so it may come from anyone. Sizes, types and finiteness are checked. The guarantee
    is recomputed from its event: a file that states less than the event costs is refused, where an excess of one
    millionth is taken for rounding. That the numbers in the file were made by this event nobody can tell from a file.

    Parameters
    ----------
    path : path
        Of the file.
    max_bytes : int, default=2**30
        A longer file is refused before it is read.

    Returns
    -------
    estimator
        Fitted, with the parameters, attributes and guarantee that it was saved with; `random_state` is None. What
        `tacit fit` wrote is a `tacit.modelfiles.TableModel`, which predicts from a DataFrame.

    Raises
    ------
    ValueError
        If the file is not a model, or not one to believe.
    OSError
        If it cannot be opened.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        facts = os.fstat(file.fileno())
        regular = stat.S_ISREG(facts.st_mode) and facts.st_size <= max_bytes
        raw = file.read(facts.st_size + 1) if regular else b""
    try:
        if not regular:
            raise ValueError(f"it is longer than {max_bytes:,} bytes (max_bytes allows more), or a device")
        if len(raw) > facts.st_size:
            raise ValueError("it grew while it was read")
        if raw[:1] not in (b"{", b" ", b"\n", b"\r", b"\t"):
            raise ValueError(
                "it is not JSON; pickles and joblib files are never read here, as they execute what is in them"
            )
        return _read(raw.decode("utf8"))
    except UnicodeDecodeError:
        told = "it is not text in UTF-8"
    except ValueError as error:
        told = str(error)
    raise ValueError(f"{path} is not a model that can be loaded: {_shortened(told)}")


def _written(model: Any) -> Json:
    kind: type = type(model)
    name = kind.__name__
    entry = CLASSES.get(name)
    if entry is None or entry.kind is not kind:
        raise TypeError(f"a model file cannot hold {name}; it holds {', '.join(CLASSES)}")
    if entry.attributes:
        check_is_fitted(model)
    told = values.told(model)
    held = [attribute for attribute in (*entry.attributes, *entry.optional) if hasattr(model, attribute)]
    return {
        "class": name,
        "parameters": {key: values.written(told[key], key) for key in sorted(entry.parameters) if key in told},
        "attributes": {key: values.written(getattr(model, key), key) for key in held},
        "guarantee": None if not entry.guaranteed or model.guarantee_ is None else model.guarantee_.to_dict(),
        "parts": {key: _written(part) for key, part in _parts(model, entry).items()},
    }


def _parts(model: Any, entry: Entry) -> dict[str, Any]:
    """The models that a model is made of."""
    if not entry.has_steps:
        told = model.get_params(deep=False)
        return {key: told[key] for key in entry.parts}
    return {name: Passthrough() if is_skipped(step) else step for name, step in model.steps_}


def _read(text: str) -> Any:
    """The model in a document; whatever is wrong with it is a ValueError."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values outside of arrays of numbers")
    try:
        document = json.loads(
            text, object_pairs_hook=checks.unique_keys, parse_constant=_no_constant, parse_float=_finite
        )
        told = fields(document, {"format", "version", "written_by", "model"}, "the document")
        if told["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT!r}")
        if type(told["version"]) is not int or told["version"] != VERSION:
            raise ValueError(f"its version must be {VERSION}, which is all that tacit {tacit.__version__} reads")
        by = told["written_by"]
        if not isinstance(by, dict) or not all(isinstance(text, str) for text in by.values()):
            raise ValueError("written_by must name versions")
        check_texts(told["model"])
        with warnings.catch_warnings():  # of parameters, which were told when the model was fitted
            warnings.simplefilter("ignore")
            return _read_model(told["model"], set(CLASSES) - ONLY_STEPS)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (TypeError, OverflowError) as error:  # what was read is wrong, not the call
        raise ValueError(str(error)) from error


def _read_model(content: Json, accepted: set[str]) -> Any:
    told = fields(content, {"class", "parameters", "attributes", "guarantee", "parts"}, "a model")
    if not isinstance(told["class"], str) or told["class"] not in accepted:
        raise ValueError(f"its class must be one of {', '.join(sorted(accepted))}")
    entry = CLASSES[told["class"]]
    later = values.LATER.get(told["class"], frozenset())
    parameters = fields(told["parameters"], entry.parameters, "parameters", later)
    if entry.has_steps and (not isinstance(told["parts"], dict) or not told["parts"]):
        raise ValueError("parts must be steps")
    parts = told["parts"] if entry.has_steps else fields(told["parts"], set(entry.parts), "parts")
    plain = {name for name, other in CLASSES.items() if not other.parts} - ONLY_STEPS
    made = {name: _read_model(part, set(STEPS) if entry.has_steps else plain) for name, part in parts.items()}
    made = {name: "passthrough" if isinstance(part, Passthrough) else part for name, part in made.items()}
    given = {name: values.read(value, name) for name, value in parameters.items()}
    model = entry.kind(**given, **({"steps": given_steps(made)} if entry.has_steps else made))
    if entry.has_steps:
        model.steps_ = list(made.items())
        model._stateless = made_ready(model.steps_)
    attributes = told["attributes"]
    if not isinstance(attributes, dict) or set(attributes) - set(entry.optional) != set(entry.attributes):
        raise ValueError(f"attributes must be {', '.join(entry.attributes) or 'none'}")
    for name, value in attributes.items():
        if name != "plan_":
            setattr(model, name, values.read(value, name))
    if told["class"] in _MAY_FIND_NOTHING and told["guarantee"] is None:  # and then says so
        model.guarantee_ = None
    elif entry.guaranteed:
        model.guarantee_ = Guarantee.from_dict(told["guarantee"])
        claims.check_parameters(model, model.guarantee_)
        if "plan_" in attributes:
            model.plan_ = values.read_plan(attributes["plan_"], "plan_", model.guarantee_)
            claims.check_plan(model.plan_, model.guarantee_)
        claims.check(model.guarantee_)
    elif told["guarantee"] is not None:
        raise ValueError(f"{entry.kind.__name__} has no guarantee of its own")
    entry.check(model)
    return model


def _versions() -> dict[str, str]:
    """For people: reading does not depend on it."""
    packages = {name: version(name) for name in ("numpy", "scikit-learn")}
    return {"tacit": tacit.__version__, "python": platform.python_version(), **packages}


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def _shortened(text: str) -> str:
    """One short line, whatever the file made of it."""
    line = "".join(character if character.isprintable() else "?" for character in text)
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "..."


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for a writer, which a named pipe may never have."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _mode(path: Path) -> int | None:
    """The permissions of a file that is there; None for a link, or if there is none."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else None


def write_whole(path: Path, content: bytes) -> None:
    """The whole file or none: under a name that nobody can foresee, then in its place."""
    mode = _mode(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                part.chmod(mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
