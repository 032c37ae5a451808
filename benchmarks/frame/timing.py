"""Clocks: actions that take turns, so that a busy machine slows all of them, and processes of their own."""

import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """One run of an action."""
    start = clock()
    action()
    return clock() - start


def in_turns(rounds: int, actions: Mapping[str, Callable[[], float]]) -> Iterator[tuple[int, str, float]]:
    """Round, name and what each action says it took, after one round that is not counted."""
    for turn in range(-1, rounds):
        for name, action in actions.items():
            took = action()
            if turn >= 0:
                yield turn, name, took


def medians(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The median time of each action, in turns."""
    named = {str(place): action for place, action in enumerate(actions)}
    return [statistics.median(took) for took in _taken(rounds, named, time.perf_counter).values()]


def least(rounds: int, actions: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least of the processor's seconds of each action in turns: what others on the machine disturb least."""
    return {name: min(took) for name, took in _taken(rounds, actions, time.process_time).items()}


def _taken(
    rounds: int, actions: Mapping[str, Callable[[], object]], clock: Callable[[], float]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _, name, took in in_turns(rounds, {name: partial(seconds, action, clock) for name, action in actions.items()}):
        found[name].append(took)
    return found


def fresh(*argv: str) -> str:
    """What a Python process of its own prints."""
    done = subprocess.run([sys.executable, *argv], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the fit failed:\n{done.stderr}")
    return done.stdout


def peak() -> int:
    """The largest resident size of this process so far, in bytes.

    On Linux `ru_maxrss` starts from the size of the process that started this one, so the kernel's own mark is read.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
