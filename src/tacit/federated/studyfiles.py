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
    return [header, *(f"{name} = {_toml(value)}" for name, value in values.items() if value is not None)]


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf is a number in TOML too
    return json.dumps(value, ensure_ascii=False)
