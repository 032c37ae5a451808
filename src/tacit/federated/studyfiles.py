"""Study files: TOML with a `[study]` table and others beside it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def table_of(path: Path | str, name: str) -> Any:
    """What a study file says under a name; None if it says nothing."""
    with Path(path).open("rb") as file:
        try:
            return tomllib.load(file).get(name)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a study file: {error}") from error


def toml_table(header: str, values: Mapping[str, Any]) -> list[str]:
    """The lines of a table; what is None is left out."""
    return [header, *(f"{_key(name)} = {_toml(value)}" for name, value in values.items() if value is not None)]


def _key(name: str) -> str:
    """A name as it is, if it may stand so."""
    return name if name.isascii() and name.replace("_", "").isalnum() else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(name)} = {_toml(part)}' for name, part in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf is a number in TOML too
    return json.dumps(value, ensure_ascii=False)
