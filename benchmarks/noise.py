"""Speed of the noise layer, as ratios against named baselines measured in the same run.

    python benchmarks/noise.py [--out benchmarks/results/noise.md]

Every figure is the median over rounds in which ours and the baseline take turns, so that a busy machine slows both.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release, Unit, epsilon_of, gaussian
from tacit.privacy.mechanisms import Selection, Sensitivity
from tacit.privacy.noise import samplers

DRAWS = 1 << 20
CANDIDATES = 10_000
_ROWS = Unit("row", 1_000_000)


def seconds(action: Callable[[], object]) -> float:
    """One run of an action."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def alternating(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The median time of each action, taking turns after one unmeasured round."""
    for action in actions:
        action()
    times = [[seconds(action) for action in actions] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def bulk_noise() -> list[tuple[str, str, str]]:
    """Gaussian noise and whole releases against NumPy's normals."""
    source, generator = NoiseSource(), np.random.Generator(np.random.PCG64())
    value = np.zeros(DRAWS)
    ours, release, laplace, numpy_ = alternating(
        15,
        lambda: samplers.normals(source, DRAWS),
        lambda: gaussian(value, 1.0, 1.0, source),
        lambda: samplers.laplaces(source, DRAWS),
        lambda: generator.standard_normal(DRAWS),
    )
    baseline = f"NumPy PCG64 `standard_normal`, {DRAWS / numpy_ / 1e6:.0f} M/s"
    return [
        ("bulk Gaussian noise, 2^20 draws", f"{DRAWS / ours / 1e6:.0f} M/s", f"{numpy_ / ours:.2f}x of {baseline}"),
        ("`gaussian()` of 2^20 values", f"{DRAWS / release / 1e6:.0f} M/s", f"{numpy_ / release:.2f}x of the same"),
        ("bulk Laplace noise, 2^20 draws", f"{DRAWS / laplace / 1e6:.0f} M/s", f"{numpy_ / laplace:.2f}x of the same"),
    ]


def selection(picks: int) -> list[tuple[str, str, str]]:
    """Exponential-mechanism picks, each from fresh scores, against Gumbel-max with NumPy."""
    scores = np.random.default_rng(0).normal(size=CANDIDATES)
    generator = np.random.default_rng(1)
    plan = Plan(Release("pick", "exponential", share=1.0, count=picks)).calibrate(Budget(1.0, 1e-6), _ROWS, "noise")
    mechanism = Selection(Sensitivity.non_negative(1.0))

    def ours() -> None:
        gate = Gate(plan, NoiseSource())
        for _ in range(picks):
            gate.release("pick", mechanism, scores)

    def gumbel() -> None:
        for _ in range(picks):
            np.argmax(scores + generator.gumbel(size=CANDIDATES))

    exact, naive = alternating(3, ours, gumbel)
    return [
        (
            f"exponential mechanism, {CANDIDATES:,} candidates, scores new each time",
            f"{exact / picks * 1e6:.0f} us a pick, so {exact / picks * 1e6:.0f} s for 1e6",
            f"{naive / exact:.1f}x of Gumbel-max in float64 NumPy ({naive / picks * 1e6:.0f} us)",
        )
    ]


def sampling() -> list[tuple[str, str, str]]:
    """Poisson samples against a word for every row, compared with floor(2^64 q)."""
    source, table = NoiseSource(), []
    for q in (0.001, 0.01, 0.1):
        threshold = np.uint64(int(q * 2.0**64))
        ours, words = alternating(
            15,
            lambda q=q: samplers.poisson_sample(source, DRAWS, q),
            lambda threshold=threshold: np.flatnonzero(source.words(DRAWS) < threshold),
        )
        what = f"Poisson sample of 2^20 rows, q = {q:g}"
        each = 1e9 / (q * DRAWS)
        table.append(
            (
                what,
                f"{ours * each:.0f} ns a participant",
                f"{words / ours:.0f}x of a word for every row ({words * each:.0f} ns)",
            )
        )
    return table


def imports() -> list[tuple[str, str, str]]:
    """Import times in fresh processes."""

    def fresh(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    empty, package, core, sklearn = alternating(
        9, fresh("sys"), fresh("tacit"), fresh("tacit.privacy"), fresh("sklearn.linear_model")
    )
    baseline = f"`import sklearn.linear_model`, {sklearn - empty:.2f} s"
    return [
        ("`import tacit`", f"{package - empty:.3f} s", f"{(package - empty) / (sklearn - empty):.2f}x of {baseline}"),
        ("`import tacit.privacy`", f"{core - empty:.2f} s", f"{(core - empty) / (sklearn - empty):.2f}x of the same"),
    ]


def calibration() -> list[tuple[str, str, str]]:
    """Calibration of a sampled plan of 10,000 steps, and where it lands."""
    rows = []
    for q in (0.001, 0.01, 0.1):
        plan = Plan(Release("steps", "gaussian", share=1.0, count=10_000, sampling=q))
        budgets = [Budget(1.0 + k * 1e-6, 1e-6) for k in range(6)]  # all different, so that no cache answers
        times = [seconds(lambda budget=budget, plan=plan: plan.calibrate(budget, _ROWS, "noise")) for budget in budgets]
        landed = epsilon_of(plan.calibrate(budgets[0], _ROWS, "noise").event, 1e-6)
        what = f"calibrate 10,000 sampled steps, q = {q:g}"
        rows.append((what, f"{statistics.median(times):.2f} s", f"epsilon {landed:.4f} of 1"))
    return rows


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--picks", type=int, default=20_000, help="selections to time (default: %(default)s)")
    arguments = parser.parse_args()
    rows = [*bulk_noise(), *selection(arguments.picks), *sampling(), *imports(), *calibration()]
    lines = [
        "# The noise layer",
        "",
        f"`python benchmarks/noise.py`, Python {platform.python_version()}, NumPy {np.__version__};"
        " medians of alternating runs.",
        "",
        "| what | ours | against |",
        "|---|---|---|",
        *(f"| {what} | {ours} | {against} |" for what, ours, against in rows),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
