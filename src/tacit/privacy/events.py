"""Releases as values: the few `dp_accounting` events that Tacit's mechanisms produce, and how to read them.

What holds: `GaussianDpEvent(z)` is noise of z times the release's sensitivity *under the adjacency of the guarantee
that holds the event*. So an accountant reads an event with its default neighbour relation, whichever adjacency was
asked for. Composed events hold tuples: events can be hashed, and never change.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from tacit.privacy import checks

Leaves = dict[DpEvent, int]


def gaussian(noise_multiplier: float, sampling: float = 1.0) -> DpEvent:
    """A Gaussian release, of a Poisson sample of the rows where `sampling` is below 1."""
    event = GaussianDpEvent(float(noise_multiplier))
    return event if sampling == 1.0 else PoissonSampledDpEvent(float(sampling), event)


def laplace(noise_multiplier: float) -> DpEvent:
    """A Laplace release."""
    return LaplaceDpEvent(float(noise_multiplier))


def exponential(e0: float) -> DpEvent:
    """A draw of the exponential mechanism whose log-probabilities move by a range of at most `e0`.

    Bounded range e0 is (e0^2 / 8)-zCDP, and stays so under adaptive composition.
    """
    return ZCDpEvent(float(e0) ** 2 / 8)


OBJECTIVE_RATIO = 0.3
"""tau / mu of objective perturbation: what the curvature may tell, over what the noise covers."""

# Where -x - log(1 - x) meets log 2 at x, c = 2 log 2 / x^2; rounded up.
OBJECTIVE_COST = 1.0 + 2.3502 * OBJECTIVE_RATIO**2


def objective(noise_multiplier: float) -> DpEvent:
    """Objective perturbation with noise of `noise_multiplier` times the longest gradient, and tau = OBJECTIVE_RATIO mu.

    It is zCDP with rho = (mu^2 + c tau^2) / 2, mu = 1 / noise_multiplier.
    """
    z = float(noise_multiplier)
    return ZCDpEvent(OBJECTIVE_COST / z / z / 2 if z > 0 else math.inf)


def repeated(event: DpEvent, count: int) -> DpEvent:
    """The event `count` times over."""
    return event if count == 1 else SelfComposedDpEvent(event, int(count))


def composed(events: Iterable[DpEvent]) -> DpEvent:
    """Several events on the same rows, as one."""
    parts = tuple(events)
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts)


def frozen(event: DpEvent) -> DpEvent:
    """The same event with tuples in place of lists, which its owner could still change."""
    if isinstance(event, ComposedDpEvent):
        return ComposedDpEvent(tuple(map(frozen, event.events)))
    if isinstance(event, SelfComposedDpEvent):
        return SelfComposedDpEvent(frozen(event.event), event.count)
    if isinstance(event, PoissonSampledDpEvent):
        return PoissonSampledDpEvent(event.sampling_probability, frozen(event.event))
    return event


def leaves(event: DpEvent) -> Leaves:
    """The event's elementary releases and how often each is made."""
    total: Leaves = {}
    for leaf, times in walk(event):
        total[leaf] = total.get(leaf, 0) + times
    return total


def walk(event: DpEvent, times: int = 1) -> Iterator[tuple[DpEvent, int]]:
    """The elementary releases one by one; the same may come several times."""
    if isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from walk(part, times)
    elif isinstance(event, SelfComposedDpEvent):
        yield from walk(event.event, times * checks.count("count", event.count, least=0))
    elif not isinstance(event, NoOpDpEvent) and times > 0:
        yield event, times


def describe(event: DpEvent) -> str:
    """What was released, in words: "33 Gaussian releases, 1 selection"."""
    tally: dict[str, int] = {}
    for leaf, times in walk(event):
        word = _WORDS.get(type(leaf), type(leaf).__name__)
        tally[word] = tally.get(word, 0) + times
    parts = [f"{n:,} {word}{'' if n == 1 else 's'}" for word, n in tally.items()]
    return ", ".join(parts) if parts else "no release"


_WORDS: dict[type, str] = {
    GaussianDpEvent: "Gaussian release",
    PoissonSampledDpEvent: "sampled Gaussian release",
    LaplaceDpEvent: "Laplace release",
    ZCDpEvent: "zCDP release",
    NonPrivateDpEvent: "non-private release",
}

# Only these are read back from a file: a name in JSON must never choose which code is imported.
_FIELDS: dict[type, tuple[str, ...]] = {
    GaussianDpEvent: ("noise_multiplier",),
    LaplaceDpEvent: ("noise_multiplier",),
    ZCDpEvent: ("rho", "xi"),
    PoissonSampledDpEvent: ("sampling_probability", "event"),
    SelfComposedDpEvent: ("event", "count"),
    ComposedDpEvent: ("events",),
    NoOpDpEvent: (),
    NonPrivateDpEvent: (),
}
_BY_NAME = {kind.__name__: kind for kind in _FIELDS}


def to_dict(event: DpEvent) -> dict[str, Any]:
    """The event as nested plain values; `from_dict` is its inverse."""
    fields = _FIELDS.get(type(event))
    if fields is None:
        raise TypeError(f"an event of type {type(event).__name__} cannot be written; known: {', '.join(_BY_NAME)}")
    return {"type": type(event).__name__} | {name: _plain(getattr(event, name)) for name in fields}


def from_dict(values: dict[str, Any]) -> DpEvent:
    """The event that `to_dict` wrote."""
    name = values.get("type") if isinstance(values, dict) else None
    if not isinstance(name, str) or name not in _BY_NAME:
        raise ValueError(f"not an event; its 'type' must be one of {', '.join(_BY_NAME)}")
    kind = _BY_NAME[name]
    if set(values) != {"type", *_FIELDS[kind]}:
        raise ValueError(f"{kind.__name__} needs exactly the fields {', '.join(_FIELDS[kind]) or '(none)'}")
    return kind(**{name: _value(name, values[name]) for name in _FIELDS[kind]})


def _plain(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return to_dict(value)
    if isinstance(value, (tuple, list)):
        return [to_dict(part) for part in value]
    if isinstance(value, int):
        return value
    return "inf" if math.isinf(value) else float(value)


def _value(name: str, value: Any) -> Any:
    if name == "event":
        return from_dict(value)
    if name == "events":
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"events must be a list, got {type(value).__name__}")
        return tuple(from_dict(part) for part in value)
    if name == "count":
        return checks.count("count", value, least=0)
    number = checks.real(name, math.inf if value == "inf" else value)
    if number < 0 or (name == "sampling_probability" and number > 1):
        raise ValueError(f"{name} must be a number of at least 0 (a probability at most 1), got {value!r}")
    return number
