"""Runs the peers beside us, each in a process of its own environment, on the sets scaled by public bounds."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dense.peers import grids, setup
from benchmarks.frame.records import Record, Store

DELTA = 1e-5


def run(store: Store, name: str, kind: str, seed: int, split: Sequence[Any], epsilons: Sequence[float]) -> list[str]:
    """Fill in what the store lacks for one set and one seed. Returns a line for each peer that was skipped."""
    skipped = []
    for peer in setup.PEERS:
        points = grids.points(peer, kind)
        grid = grids.describe(peer, kind)
        todo = [epsilon for epsilon in epsilons if not _known(store, name, peer, epsilon, seed, grid)]
        if not todo:
            continue
        reason = setup.why_missing(peer)
        if reason:
            skipped.append(f"skipped: {peer} ({reason})")
            continue
        settings = {"kind": kind, "epsilons": todo, "delta": DELTA, "seed": seed, "points": points}
        for row in _answers(peer, split, settings):
            store.add(Record("public", name, peer, row["epsilon"], seed, row["scores"], row["seconds"], grid))
    return skipped


def _known(store: Store, name: str, peer: str, epsilon: float, seed: int, grid: str) -> bool:
    record = store.get(("public", name, peer, repr(epsilon), seed))
    return record is not None and record.note == grid


def _answers(peer: str, split: Sequence[Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        arrays = dict(zip(("X_train", "X_test", "y_train", "y_test"), split, strict=True))
        np.savez(problem, settings=json.dumps(settings), **arrays)
        runner = setup.HERE / f"{peer}_runner.py"
        command = [str(setup.python(peer)), str(runner), str(problem)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{peer} failed: {done.stderr.strip().splitlines()[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
