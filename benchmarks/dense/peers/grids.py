"""What is tried for each peer; the best on the test set is reported, which flatters the peer.

Read by the benchmark and by the runners in their own environments, so it needs nothing but Python.
"""

from itertools import product

# diffprivlib's LogisticRegression: the inverse strength C of the penalty. Its LinearRegression has nothing to tune.
DIFFPRIVLIB_C = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)

# opacus: DP-SGD from zero with momentum, on Poisson batches of a tenth of the rows. A rate is the learning rate times
# the clip.
OPACUS_SAMPLING = 0.1
OPACUS_MOMENTUM = 0.9
OPACUS_EPOCHS = (2, 10, 40)
OPACUS_RATES = {"classification": (0.05, 0.3, 2.0, 12.0), "regression": (0.01, 0.05, 0.3)}
OPACUS_CLIPS = {"classification": (0.1, 1.0), "regression": (1.0,)}


def points(peer: str, kind: str) -> list[dict[str, float]]:
    """The settings of a peer for one kind of task, in the order of the scores in a record."""
    if peer == "diffprivlib":
        return [{"C": C} for C in DIFFPRIVLIB_C] if kind == "classification" else [{}]
    settings = product(OPACUS_EPOCHS, OPACUS_RATES[kind], OPACUS_CLIPS[kind])
    return [{"epochs": epochs, "rate": rate, "clip": clip} for epochs, rate, clip in settings]


def describe(peer: str, kind: str) -> str:
    """The grid in words; records carry it, so that a changed grid is run again."""
    if peer == "diffprivlib":
        return f"C in {_list(DIFFPRIVLIB_C)}" if kind == "classification" else "nothing to tune"
    return (
        f"DP-SGD, sampling {OPACUS_SAMPLING:g}, momentum {OPACUS_MOMENTUM:g}, epochs in {_list(OPACUS_EPOCHS)},"
        f" learning rate times clip in {_list(OPACUS_RATES[kind])}, clip in {_list(OPACUS_CLIPS[kind])}"
    )


def _list(values: tuple[float, ...]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"
