"""How many steps a user may ask of a solver.

More steps than these are of no use: the noise of a step grows with the square root of their number, rules of our own
stay far below, and a fit would run for hours. They are refused before the data is read.
"""

from tacit.privacy import Plan, checks
from tacit.solvers.task import Options

_MOST_ITER = {"frank-wolfe": 1_000_000, "gradient": 100_000, "greedy": 100_000}  # papers on Frank-Wolfe make 400,000
_MOST_PASSES = 100_000
_MOST_STEPS = 10_000_000  # of a few rows each


def checked_iterations(value: object, solver: str) -> int:
    """`n_iter`, as far as the solver makes that many steps; the most that any makes for one still to be chosen."""
    most = _MOST_ITER.get(solver, max(_MOST_ITER.values()))
    number = checks.count("n_iter", value, most=None)
    if number > most:
        of = f"the {solver} solver" if solver in _MOST_ITER else "any solver"
        raise ValueError(
            f"n_iter must be at most {most:,} for {of}, got {checks.shown(number)}: each step adds noise to all others"
        )
    return number


def checked_passes(value: object) -> float:
    """`n_passes`."""
    number = checks.positive("n_passes", value)
    if number > _MOST_PASSES:
        raise ValueError(
            f"n_passes must be at most {_MOST_PASSES:,}, got {number:g}: each pass adds noise to all others"
        )
    return number


def check_steps(plan: Plan, options: Options) -> None:
    """Refuse passes in too many small steps, where the user asked for them."""
    steps = max(release.count for release in plan.releases)
    if steps > _MOST_STEPS and (options.n_passes is not None or options.batch_size is not None):
        raise ValueError(
            f"n_passes={options.n_passes!r} with batch_size={options.batch_size!r} would make {steps:,} steps, and at"
            f" most {_MOST_STEPS:,} are of use, as each adds noise to all others; lower n_passes or raise batch_size"
        )
