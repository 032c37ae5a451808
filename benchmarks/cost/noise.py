"""Speed of the noise layer, as ratios against named baselines measured in the same run.

    python -m benchmarks.cost.noise [--out FOLDER] [--picks 20000]

Every figure is the median over rounds in which ours and the baseline take turns, so that a busy machine slows both.
"""

import statistics
from functools import partial
from typing import Any

import numpy as np

from benchmarks import cost
from benchmarks.frame.timing import fresh, medians, seconds
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release, Unit, epsilon_of, gaussian
from tacit.privacy.mechanisms import Selection, Sensitivity
from tacit.privacy.noise import samplers

INTRO = """\
# The noise layer

`python -m benchmarks.cost.noise`, Python {python}, NumPy {numpy}; medians of alternating runs."""
DRAWS = 1 << 20
CANDIDATES = 10_000
_ROWS = Unit("row", 1_000_000)


def bulk_noise() -> cost.Rows:
    """Gaussian noise and whole releases against NumPy's normals."""
    source, generator = NoiseSource(), np.random.Generator(np.random.PCG64())
    value = np.zeros(DRAWS)
    ours, release, laplace, numpy_ = medians(
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


def selection(picks: int) -> cost.Rows:
    """Exponential-mechanism picks, each from fresh scores, against Gumbel-max with NumPy."""
    scores = np.random.default_rng(0).normal(size=CANDIDATES)
    generator = np.random.default_rng(1)
    promise = Plan(Release("pick", "exponential", share=1.0, count=picks)).calibrate(Budget(1.0, 1e-6), _ROWS, "noise")
    mechanism = Selection(Sensitivity.non_negative(1.0))

    def ours() -> None:
        gate = Gate(promise, NoiseSource())
        for _ in range(picks):
            gate.release("pick", mechanism, scores)

    def gumbel() -> None:
        for _ in range(picks):
            np.argmax(scores + generator.gumbel(size=CANDIDATES))

    exact, naive = medians(3, ours, gumbel)
    return [
        (
            f"exponential mechanism, {CANDIDATES:,} candidates, scores new each time",
            f"{exact / picks * 1e6:.0f} us a pick, so {exact / picks * 1e6:.0f} s for 1e6",
            f"{naive / exact:.1f}x of Gumbel-max in float64 NumPy ({naive / picks * 1e6:.0f} us)",
        )
    ]


def sampling() -> cost.Rows:
    """Poisson samples against a word for every row, compared with floor(2^64 q)."""
    source, table = NoiseSource(), []
    for q in (0.001, 0.01, 0.1):
        threshold = np.uint64(int(q * 2.0**64))
        ours, words = medians(
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


def imports() -> cost.Rows:
    """Import times in fresh processes."""
    modules = ("sys", "tacit", "tacit.privacy", "sklearn.linear_model")
    empty, package, core, sklearn = medians(9, *(partial(fresh, "-c", f"import {name}") for name in modules))
    baseline = f"`import sklearn.linear_model`, {sklearn - empty:.2f} s"
    return [
        ("`import tacit`", f"{package - empty:.3f} s", f"{(package - empty) / (sklearn - empty):.2f}x of {baseline}"),
        ("`import tacit.privacy`", f"{core - empty:.2f} s", f"{(core - empty) / (sklearn - empty):.2f}x of the same"),
    ]


def calibration() -> cost.Rows:
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


def rows(arguments: Any) -> cost.Rows:
    """All of them."""
    return [*bulk_noise(), *selection(arguments.picks), *sampling(), *imports(), *calibration()]


if __name__ == "__main__":
    cost.main(__doc__, "noise", INTRO, rows, {"picks": 20_000})
