"""`tacit demo`: private and non-private models on real data."""

from argparse import Namespace

from tacit.privacy import Budget, checks
from tacit.report import demo


def run(arguments: Namespace) -> int:
    """Check the arguments, then fit, print and plot."""
    checks.count("repeats", arguments.repeats)
    for epsilon in arguments.epsilon or ():
        Budget(epsilon, 0.5)
    demo.run(arguments.out, demo.EPSILONS if arguments.epsilon is None else arguments.epsilon, arguments.repeats)
    return 0
