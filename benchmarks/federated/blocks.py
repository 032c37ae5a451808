"""Figures 1 and 2 of the federated benchmark: block-coordinate Frank-Wolfe without privacy, its loss by iterations.

Figure 1. The paper samples 4,000 of 10,000 coordinates; an l1 ball is not a product over coordinates, so the blocks
here are 100 groups of 100 columns, each with an l1 ball of its own, and as large a part of them is drawn. Two workers
hold 50 groups each and draw 40 of them: the paper's (2, 4,000)-distributed sampling. Its blocks are drawn with
probability 0.8; the paper takes 0.16 for it, and steps by that.

Figure 2. K workers with an equal part of the columns, each of which moves in every iteration. As printed, each worker
has a ball of the whole radius, so that all of them together are allowed K times the l1 norm.
"""

import numpy as np

from benchmarks.federated.block_frank_wolfe import Balls, Custom, Domain, block_frank_wolfe
from benchmarks.federated.problems import Problem
from benchmarks.frame import Floats
from tacit.federated.protocols.feature_sharing.samplings import Distributed, Sampling, TauNice, elementary
from tacit.privacy.public import PublicDraws

GROUPS, DRAWN = 100, 0.4
PRINTED_MARGINAL = 0.16
PRINTED, SAME = "each its own", "shared"  # the balls of Figure 2


def marks(count: int) -> list[int]:
    """Numbers of iterations after which a trace is looked at."""
    return sorted({round(mark) for mark in np.geomspace(1, count, 40)})


def samplings() -> dict[str, tuple[str, Sampling]]:
    """The samplings of Figure 1, by name, with what the page calls them."""
    tau = round(DRAWN * GROUPS)
    distributed = Distributed(np.array_split(np.arange(GROUPS), 2), tau)
    as_printed = Custom(distributed.draw, np.full(GROUPS, PRINTED_MARGINAL))
    return {
        "elementary": ("elementary, p = 1", elementary(GROUPS)),
        "tau-nice": (f"tau-nice, p = {DRAWN:g}", TauNice(GROUPS, tau)),
        "distributed": (f"(2, tau)-distributed, p = {distributed.least_marginal:g}", distributed),
        "distributed printed": (f"(2, tau)-distributed, stepping by p = {PRINTED_MARGINAL:g} as printed", as_printed),
    }


def group_domain(problem: Problem) -> Balls:
    """Groups of columns with one radius, the largest l1 norm that the truth has in any of them."""
    assert problem.truth is not None
    groups = np.array_split(np.arange(problem.A.shape[1]), GROUPS)
    return Balls(groups, max(float(np.abs(problem.truth[group]).sum()) for group in groups))


def worker_domain(problem: Problem, workers: int, balls: str) -> Balls:
    """An l1 ball for each worker: of the whole radius, or of its part of it."""
    groups = np.array_split(np.arange(problem.A.shape[1]), workers)
    return Balls(groups, problem.radius if balls == PRINTED else problem.radius / workers)


def trace(problem: Problem, domain: Domain, sampling: Sampling, count: int, seed: int) -> dict[str, list[float]]:
    """The loss after some numbers of iterations, the last one being all of them."""
    losses: list[float] = []
    by_row = problem.A.tocsr()
    wanted = marks(count)

    def gradient(x: Floats, at: np.ndarray) -> Floats:
        return (problem.A.T @ problem.slopes(by_row @ x))[at]

    def watch(t: int, x: Floats) -> None:
        if t in wanted:
            losses.append(problem.value(by_row @ x))

    block_frank_wolfe(gradient, domain, sampling, count, PublicDraws(seed), watch=watch)
    return {"iterations": [float(mark) for mark in wanted], "loss": losses}
