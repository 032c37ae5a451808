"""The gate: the only way from data to what leaves, and from an algorithm to noise.

A gate is opened on a promise. Everything that is released passes through `Gate.release`, which hands the mechanism a
`Grant`; the grant counts releases, not random words, and raises when a release is not in the plan, is of another kind,
or was already made as often as planned. `finish` raises when one is missing. A planned release may be left out with
`skip`, for a reason that is itself public. What all of it costs is the gate's `guarantee`.

The methods that stand for all that a run can draw are few: `release`, `samples` (and `sample`), `publicly` and
`secret_normals`. Tests record and replay runs there, and nowhere else.
"""

import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.checks import Adjacency
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import MAX_BITS
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import Kind, Promise, Release

if TYPE_CHECKING:
    from tacit.privacy.mechanisms.sensitivity import Sensitivity

Integers = NDArray[np.int64]
Progress = Callable[[str, int, int], None]
Out = TypeVar("Out", covariant=True)


class PlanViolationError(RuntimeError):
    """A solver made a release that the plan does not hold, or left one out."""


class Mechanism(Protocol[Out]):
    """A private release as a frozen value: its kind, how far one row can move it, and how it is drawn."""

    @property
    def kind(self) -> Kind:
        """The law of its noise."""

    @property
    def draw(self) -> Callable[..., Out]:
        """What makes the release of a grant and values: it checks them, takes the grant, and draws from its source."""


class Grant:
    """Leave to make releases of one name, which a mechanism takes when its values were found to be in order."""

    __slots__ = ("_gate", "_is_open", "kind", "name", "taken")

    def __init__(self, gate: "Gate", name: str, kind: Kind) -> None:
        self._gate, self.name, self.kind = gate, name, kind
        self._is_open, self.taken = True, 0

    @property
    def multiplier(self) -> float:
        """Noise over sensitivity."""
        return self._gate.multiplier(self.name)

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation that the sensitivity is to be taken for."""
        return self._gate.adjacency

    def take(self, count: int = 1) -> NoiseSource:
        """Count one release, or several, and give the source that their noise is drawn from."""
        if not self._is_open:
            raise PlanViolationError(f"the grant of release {self.name!r} ended with that release")
        source = self._gate._take(self.name, self.kind, count)
        self.taken += count
        return source

    def close(self) -> None:
        """Take nothing more: a grant is for the one call of `Gate.release` that made it."""
        self._is_open = False

    def samples(self, count: int) -> tuple[Integers, Integers]:
        """The samples of the next releases: see `Gate.samples`."""
        return self._gate.samples(self.name, count)


class Gate:
    """Lets the releases of a promise through, each as often as planned.

    Parameters
    ----------
    promise : Promise
        What may be released, and with which multipliers.
    source : NoiseSource
        Where the noise comes from; `Gate.open` makes one.
    progress : callable, optional
        Called as progress(name, made, planned) after each release: how far the plan has come, which is public.
    made : mapping of str to int, optional
        How many releases of each name were made under this promise before, as a ledger on disk holds them.

    Examples
    --------
    >>> from tacit.privacy import Budget, Gate, Plan, Release, Unit
    >>> from tacit.privacy.mechanisms import GaussianVector, Sensitivity
    >>> plan = Plan(Release("sum", "gaussian", share=1.0))
    >>> promise = plan.calibrate(Budget(1.0, 1e-6), Unit("row", 1000), "sum")
    >>> with Gate.open(promise) as gate:
    ...     noisy = gate.release("sum", GaussianVector(Sensitivity.vector(1.0)), [3.0, 4.0])
    >>> print(gate.guarantee)
    (1.0, 1e-06)-DP, add-remove one row of 1,000; sum solver, 1 Gaussian release
    """

    def __init__(
        self,
        promise: Promise,
        source: NoiseSource,
        *,
        progress: Progress | None = None,
        made: Mapping[str, int] | None = None,
    ) -> None:
        self.promise = promise
        self._source = source
        self._progress = progress
        self._releases = {release.name: release for release in promise.plan.releases}
        self._left = {release.name: release.count for release in promise.plan.releases}
        self._sampled: dict[str, int] = {}  # samples drawn for releases that are still to be made
        for name, count in (made or {}).items():
            release = self._planned(name)
            self._left[name] -= checks.count("made", count, least=0)
            if self._left[name] < 0:
                raise PlanViolationError(f"release {name!r} was made {count} times, of {release.count} planned")

    @classmethod
    def open(
        cls,
        promise: Promise,
        *,
        seed: int | None = None,
        key: bytes | None = None,
        seeded: bool = False,
        made: Mapping[str, int] | None = None,
        progress: Progress | None = None,
        stacklevel: int = 3,
    ) -> Self:
        """A gate with noise of its own.

        Parameters
        ----------
        promise : Promise
            What may be released.
        seed : int, optional
            The `random_state` of a user: such a gate warns. None draws a fresh key.
        key : bytes, optional
            The key of one round, from which the same round gets the same noise: see `NoiseSource.from_key`.
        seeded : bool
            Whether the key follows from a number that others may know.
        made, progress
            As for the class.
        stacklevel : int
            Whom the warning points to: by default the caller of the function that opens the gate.
        """
        if key is None:
            source = NoiseSource.for_fit(seed, stacklevel=stacklevel + 1)
        elif seed is None:
            source = NoiseSource.from_key(key, seeded=seeded)
        else:
            raise TypeError("a gate takes a seed or a key, not both")
        return cls(promise, source, progress=progress, made=made)

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation that sensitivities are to be taken for."""
        return self.promise.budget.adjacency

    @property
    def seeded(self) -> bool:
        """Whether the noise can be reproduced by someone who knows a number."""
        return self._source.seeded

    @property
    def guarantee(self) -> Guarantee:
        """What the whole promise gives away; it holds however much of it was made."""
        return self.promise.guarantee(seeded=self.seeded)

    @property
    def made(self) -> dict[str, int]:
        """How often each release was made, skipped ones and those made before included."""
        return {name: release.count - self._left[name] for name, release in self._releases.items()}

    def left(self, name: str) -> int:
        """How many releases of this name the plan still allows."""
        return self._left[self._planned(name).name]

    def multiplier(self, name: str) -> float:
        """Noise over sensitivity of the named release: public, and what a solver weighs its answers by."""
        return self.promise.multiplier(self._planned(name).name)

    def noise(self, name: str, sensitivity: "Sensitivity") -> float:
        """The standard deviation of the noise (Laplace: its scale) on a release with this sensitivity. Public."""
        return self.multiplier(name) * sensitivity.under(self.adjacency)

    def release(self, name: str, mechanism: Mechanism[Out], *values: Any) -> Out:
        """What the mechanism makes of these values, as the planned release of this name."""
        grant = Grant(self, name, mechanism.kind)
        self._require_kind(self._planned(name), mechanism.kind)
        try:
            out = mechanism.draw(grant, *values)
        finally:
            grant.close()
        if not grant.taken:
            raise PlanViolationError(f"release {name!r} left without being counted; its mechanism took no grant")
        return out

    def sample(self, name: str) -> Integers:
        """The rows that take part in the next release of this name, by the coin the plan fixed."""
        return self.samples(name, 1)[0]

    def samples(self, name: str, count: int) -> tuple[Integers, Integers]:
        """The rows that take part in each of the next releases, one after the other, and where each sample starts."""
        release = self._planned(name)
        if name in self._sampled:
            raise PlanViolationError(f"release {name!r} has its sample; a second one to choose from is not planned")
        drawn = samplers.poisson_samples(
            self._source, self.promise.unit.n, release.sampling, checks.count("count", count)
        )
        self._sampled[name] = count
        return drawn

    def publicly(self, size: int, count: int | None = None) -> Integers:
        """The numbers below `size` in random order, or `count` of them drawn at random, each by itself.

        For choices that see no data and need not be secret. Draws are uneven by less than size / 2^64.
        """
        if count is None:
            return np.argsort(self._source.words(size), kind="stable").astype(np.int64, copy=False)
        return (self._source.words(count) % np.uint64(size)).astype(np.int64)

    def secret_normals(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Standard normals for state that each row keeps to itself: never released, so they cost nothing.

        The shape must be public, as that of a release.
        """
        return np.ldexp(samplers.normals(self._source, math.prod(shape)), -MAX_BITS).reshape(shape)

    def skip(self, name: str, count: int = 1) -> None:
        """Leave out planned releases; their cost stays in the guarantee. The reason must not depend on private data."""
        self._count(self._planned(name), checks.count("count", count))
        self._sampled.pop(name, None)

    def finish(self) -> None:
        """Check that everything planned was released or skipped."""
        missing = {name: left for name, left in self._left.items() if left}
        if missing:
            words = ", ".join(f"{name!r} ({left} of {self._releases[name].count})" for name, left in missing.items())
            raise PlanViolationError(f"planned but neither released nor skipped: {words}")

    def _planned(self, name: str) -> Release:
        if name not in self._releases:
            raise PlanViolationError(
                f"release {name!r} is not in the plan, which has {', '.join(map(repr, self._releases))}"
            )
        return self._releases[name]

    @staticmethod
    def _require_kind(release: Release, kind: Kind) -> None:
        if release.kind != kind:
            raise PlanViolationError(f"release {release.name!r} is planned as {release.kind}, not as {kind}")

    def _take(self, name: str, kind: Kind, count: int) -> NoiseSource:
        release = self._planned(name)
        self._require_kind(release, kind)
        self._count(release, checks.count("count", count))
        if release.sampling < 1.0 and self._sampled.get(name) != count:
            raise PlanViolationError(
                f"release {name!r} is planned on a fresh sample of the rows; call sample() before it"
            )
        self._sampled.pop(name, None)
        return self._source

    def _count(self, release: Release, count: int) -> None:
        left = self._left[release.name]
        if count > left:
            raise PlanViolationError(
                f"release {release.name!r} is planned {release.count} times, of which {left} are left;"
                f" asked for {count}"
            )
        self._left[release.name] -= count
        if self._progress is not None:
            planned = sum(r.count for r in self._releases.values())
            self._progress(release.name, planned - sum(self._left.values()), planned)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Gate cannot be pickled or copied: its releases could then be made twice")
