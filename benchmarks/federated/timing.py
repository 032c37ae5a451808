"""What a round costs besides the protocol's own work: messages, checks, journals in memory; all parties in one process.

The processor's time of a whole study is measured, and that of the protocol's functions, on both sides, is taken off.
"""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgenerator
from typing import Any
from unittest import mock

import numpy as np

from tacit.federated import FeatureSharing, Sketching
from tacit.federated.coordinator import Coordinator
from tacit.federated.node import Node
from tacit.federated.party import Party
from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol
from tacit.federated.study import Member, Study
from tacit.federated.transports.in_process import InProcess

ROWS, COLUMNS = 500, 40
LIMIT_MS = 1.0


class Watch:
    """Adds up the seconds that functions take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - start

    def around(self, function: Any) -> Any:
        """The function, with its seconds counted; of a generator, those between its yields."""

        @wraps(function)
        def timed(*given: Any) -> Any:
            with self.running():
                found = function(*given)
            return self._along(found) if isgenerator(found) else found

        return timed

    def _along(self, steps: Any) -> Any:
        answer = None
        while True:
            with self.running():
                try:
                    question = steps.send(answer)
                except StopIteration as end:
                    return end.value
            answer = yield question


def overhead(parties: int, rounds: int, seed: int) -> dict[str, float]:
    """Milliseconds of a round: all of it, the protocol's own work, and the rest."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(ROWS)
    names = [f"party-{i}" for i in range(parties)]
    members = tuple(Member(name, COLUMNS, labels=True) for name in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        protocol = FeatureSharing(n_iter=rounds, n_shared=4, geometry="product")
        study = Study(
            "overhead", "squared", members, ROWS, 1.0, protocol=protocol, sketch=Sketching(size=64), entry_bound=3.0,
            y_bounds=(-3.0, 3.0), fit_intercept=False, random_state=seed,
        )  # fmt: skip
    held = [Party(rng.standard_normal((ROWS, COLUMNS)), y, name=name) for name in names]
    nodes = [Node(study, party, warn=False) for party in held]
    coordinator, watch = Coordinator(study), Watch()
    own = {name: watch.around(getattr(FeatureSharingProtocol, name)) for name in ("answer", "coordinate")}
    with mock.patch.multiple(FeatureSharingProtocol, **own):
        start = time.process_time()
        outcome = coordinator.run(InProcess(nodes))
        whole = time.process_time() - start
    coordinator.close()
    for node in nodes:
        node.close()
    each = 1e3 / outcome.n_rounds
    return {"round": whole * each, "own": watch.seconds * each, "rest": (whole - watch.seconds) * each}
