"""Run as a script: stop a `NoiseSource` by real signals at random moments, and print how many words came twice.

A process of its own, because a signal that raises inside a coverage tracer leaves the tracer's lock held.
"""

import contextlib
import signal

import numpy as np

from tacit.privacy.noise import NoiseSource
from tacit.privacy.noise.source import BLOCK_WORDS


class TimeIsUpError(Exception):
    """What the handler raises."""


def time_is_up(_signal, _frame):
    """Stop whatever runs."""
    raise TimeIsUpError


def repeated(moment):
    """Words given twice by a source that is stopped after `moment` seconds and then asked to go on."""
    source, given = NoiseSource(16), []
    with contextlib.suppress(TimeIsUpError):
        signal.setitimer(signal.ITIMER_REAL, moment)
        while True:
            given.append(source.words(1 << 13))
    with contextlib.suppress(RuntimeError):
        given.append(source.words(3 * BLOCK_WORDS))
    words = np.concatenate([np.empty(0, np.uint64), *given])
    return len(words) - len(np.unique(words))


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, time_is_up)
    moments = np.random.default_rng(16).uniform(50e-6, 500e-6, size=100)
    print(sum(repeated(moment) for moment in moments.tolist()))
