"""The `tacit` command."""

import argparse
import sys
from collections.abc import Sequence

from tacit import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tacit", description="Differentially private linear models and PCA.")
    parser.add_argument("--version", action="version", version=f"tacit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="release a private mean and histogram of a real dataset, and what it cost")
    demo.add_argument("--epsilon", type=float, default=1.0, help="privacy budget (default: %(default)s)")
    demo.add_argument("--delta", type=float, default=None, help="default: rows ** -1.5")
    arguments = parser.parse_args(argv)
    try:
        _demo(arguments.epsilon, arguments.delta)
    except ValueError as error:
        parser.error(str(error))
    return 0


def _demo(epsilon: float, delta: float | None) -> None:
    """A private mean and histogram of tumour radii, from plan to guarantee."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from tacit.privacy import Budget, Guarantee, NoiseSource, Plan, Release
    from tacit.privacy.mechanisms import GaussianVector, Histogram, Sensitivity

    radius = load_breast_cancer().data[:, 0]
    n, largest = len(radius), 30.0  # mm; public, from what a tumour can be and not from these rows
    edges = np.arange(5.0, 35.0, 5.0)

    budget = Budget(epsilon, n**-1.5 if delta is None else delta)
    plan = Plan(Release("mean", "gaussian", share=0.3), Release("histogram", "gaussian", share=0.7))
    calibrated = plan.calibrate(budget)
    source = NoiseSource()
    with calibrated.meter(source) as meter:
        clipped = np.clip(radius, 0.0, largest)
        total = GaussianVector(Sensitivity.non_negative(largest), bound=n * largest).release(
            meter, "mean", clipped.sum()
        )
        counts = Histogram(edges).release(meter, "histogram", radius)
    guarantee = Guarantee(budget.epsilon, budget.delta, budget.adjacency, "demo", calibrated.event, n, source.seeded)

    print(f"Tumour radii of {n} women (scikit-learn's breast cancer data), bounded by 0 and {largest:g} mm.\n")
    print(
        f"Budget     epsilon = {budget.epsilon:g}, delta = {budget.delta:.2g}:"
        f" exactly mu = {budget.mu:.4f} in Gaussian DP"
    )
    for release, noise in (("mean", largest / n), ("histogram", 1.0)):
        print(f"           {release:<10}noise {calibrated.multiplier(release) * noise:.3g} (standard deviation)")
    # The data is public, so the demo may show what a private analysis must not: the exact answers.
    print(f"\nMean       {float(total) / n:.2f} mm   (exact: {radius.mean():.2f}, not private)")
    exact = Histogram(edges).counts(radius)[0]
    for low, high, noisy, count in zip(edges[:-1], edges[1:], counts, exact, strict=True):
        bar = "#" * round(max(noisy, 0.0) / 8)
        print(f"{low:>4.0f}-{high:<4.0f}  {max(noisy, 0.0):6.1f}   (exact: {count:3.0f})  {bar}")
    print(f"\nGuarantee  {guarantee}")
    print(f"Recomputed from its event: epsilon = {guarantee.recompute():.6f}")


if __name__ == "__main__":
    sys.exit(main())
