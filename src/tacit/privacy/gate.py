"""The gate: the only way from data to what leaves, and from an algorithm to noise.

A gate is opened on a promise. What holds, and must never change:

- Everything that is released passes through `Gate.release`, which hands the mechanism a `Grant`.
- A release is refused when it is not in the plan, is of another kind, or was made as often as planned.
- A grant counts releases, not random words. It ends with the release that it was made for.
- `finish` refuses to end when a planned release is missing. One may be left out with `skip`, for a public reason.
- What all of it costs is the gate's `guarantee`.

A run draws by four methods: `release`, `samples` (and `sample`), `publicly` and `secret_normals`. Tests record and
replay runs there, and nowhere else.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import numpy as np

from tacit._types import Floats, Integers
from tacit.privacy import checks
from tacit.privacy.checks import Adjacency
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import MAX_BITS
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import Kind, Promise, Release

if TYPE_CHECKING:
    from tacit.privacy.mechanisms.sensitivity import Sensitivity

Progress = Callable[[str, int, int], None]
Out = TypeVar("Out", covariant=True)
Kept = TypeVar("Kept")


class PlanViolationError(RuntimeError):
    """A solver made a release that the plan does not hold, or left one out."""


class Mechanism(Protocol[Out]):
    """A private release as a frozen value: its kind, how far one row can move it, and how it is drawn."""

    @property
    def kind(self) -> Kind:
        """The law of its noise."""

    @property
    def draw(self) -> Callable[..., Out]:
        """Makes the release from a grant and values: it checks them, takes the grant, and draws from its source."""


class Grant:
    """Leave to make releases of one name and kind. A mechanism takes it once its values were found to be in order."""

    __slots__ = ("_gate", "_release", "is_open", "name", "taken")

    def __init__(self, gate: "Gate", name: str, kind: Kind) -> None:
        release = gate._releases[name]
        if release.kind != kind:
            raise PlanViolationError(f"release {name!r} is planned as {release.kind}, not as {kind}")
        self._gate, self._release, self.name = gate, release, name
        self.is_open, self.taken = True, 0

    @property
    def multiplier(self) -> float:
        """Noise over sensitivity, as the promise has it."""
        return self._gate.multiplier(self.name)

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation of the promise."""
        return self._gate.adjacency

    @property
    def d0(self) -> float:
        """The probability that one of these releases may show what no noise covers; 0 but for thresholded ones."""
        return self._gate.promise.budget.delta * self._release.tail / self._release.count

    def take(self, count: int = 1) -> NoiseSource:
        """Count one release, or several, and give the source that their noise is drawn from."""
        if not self.is_open:
            raise PlanViolationError(f"the grant of release {self.name!r} ended with that release")
        gate, release = self._gate, self._release
        gate._count(release, checks.count("count", count))
        if release.sampling < 1.0 and gate._sampled.get(release.name) != count:
            told = f"release {release.name!r} is planned on a fresh sample of the rows"
            raise PlanViolationError(f"{told}; call sample() before it")
        gate._sampled.pop(release.name, None)
        self.taken += count
        return gate._source

    def samples(self, count: int) -> tuple[Integers, Integers]:
        """The samples of the next releases: see `Gate.samples`."""
        return self._gate.samples(self.name, count)


class _ByName(dict[str, Kept]):
    """What is kept for each planned release."""

    def __missing__(self, name: str) -> NoReturn:
        raise PlanViolationError(f"release {name!r} is not in the plan, which has {', '.join(map(repr, self))}")


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
        How many releases of each name were made under this promise before, as a ledger on disk says.

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
        self._whole: tuple[Gate, str] | None = None  # of which this is a part, and how its releases are called there
        self._releases: _ByName[Release] = _ByName()
        self._left: _ByName[int] = _ByName()
        self._sampled: dict[str, int] = {}  # samples drawn for releases that are still to be made
        for release in promise.plan.releases:
            self._releases[release.name], self._left[release.name] = release, release.count
        for name, count in (made or {}).items():
            self._left[name] -= checks.count("made", count, least=0)
            if self._left[name] < 0:
                raise PlanViolationError(f"release {name!r} was made more often than planned: {count} times")

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
        promise, made, progress
            As for the class.
        seed : int, optional
            The `random_state` of a user: such a gate warns. None draws a fresh key.
        key : bytes, optional
            The key of one round, from which the same round gets the same noise: see `NoiseSource.from_key`.
        seeded : bool
            Whether the key follows from a number that others may know.
        stacklevel : int
            Whom the warning points to: by default the caller of the function that opens the gate.
        """
        if seed is not None:
            if key is not None:
                raise TypeError("a gate takes a seed or a key, not both")
            checks.warn_of_seed(stacklevel=stacklevel)
        source = NoiseSource(seed) if key is None else NoiseSource.from_key(key, seeded=seeded)
        return cls(promise, source, progress=progress, made=made)

    def part(self, prefix: str) -> "Gate":
        """A gate on the releases whose names begin with `prefix`, named without it, for one of several steps.

        It draws from the same source, and what is made there counts here.
        """
        made = {name.removeprefix(prefix): count for name, count in self.made.items() if name.startswith(prefix)}
        part = Gate(self.promise.part(prefix), self._source, made=made)
        part._whole = self, prefix
        return part

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation of the promise: nobody can set another."""
        return self.promise.budget.adjacency

    @property
    def guarantee(self) -> Guarantee:
        """What the whole promise gives away; it holds however much of it was made."""
        return self.promise.guarantee(seeded=self._source.seeded)

    @property
    def made(self) -> dict[str, int]:
        """How often each release was made, skipped ones and those made before included."""
        return {name: release.count - self._left[name] for name, release in self._releases.items()}

    def left(self, name: str) -> int:
        """How many releases of this name the plan still allows."""
        return self._left[name]

    def multiplier(self, name: str) -> float:
        """Noise over sensitivity of the named release. Public: a solver may weigh its answers by it."""
        return self.promise.multiplier(self._releases[name].name)

    def noise(self, name: str, sensitivity: "Sensitivity") -> float:
        """The standard deviation of the noise (Laplace: its scale) on a release with this sensitivity. Public."""
        return self.multiplier(name) * sensitivity.under(self.adjacency)

    def release(self, name: str, mechanism: Mechanism[Out], *values: Any) -> Out:
        """What the mechanism makes of these values, as the planned release of this name."""
        grant = Grant(self, name, mechanism.kind)
        try:
            out = mechanism.draw(grant, *values)
        finally:
            grant.is_open = False
        if not grant.taken:
            raise PlanViolationError(f"release {name!r} left without being counted; its mechanism took no grant")
        return out

    def sample(self, name: str) -> Integers:
        """The rows that take part in the next release of this name, by the coin the plan fixed."""
        return self.samples(name, 1)[0]

    def samples(self, name: str, count: int) -> tuple[Integers, Integers]:
        """The rows that take part in each of the next releases, one after the other, and where each sample starts."""
        release = self._releases[name]
        if name in self._sampled:
            raise PlanViolationError(f"release {name!r} has its sample; a second one to choose from is not planned")
        rows = self.promise.unit.n
        drawn = samplers.poisson_samples(self._source, rows, release.sampling, checks.count("count", count))
        self._sampled[name] = count
        return drawn

    def publicly(self, size: int, count: int | None = None) -> Integers:
        """The numbers below `size` in random order, or `count` of them drawn at random, each by itself.

        For choices that see no data and need not be secret. Draws are uneven by less than size / 2^64.
        """
        if count is None:
            return np.argsort(self._source.words(size), kind="stable").astype(np.int64, copy=False)
        return (self._source.words(count) % np.uint64(size)).astype(np.int64)

    def secret_normals(self, shape: tuple[int, ...]) -> Floats:
        """Standard normals for state that each row keeps to itself: never released, so they cost nothing.

        The shape must be public, as that of a release is.
        """
        return np.ldexp(samplers.normals(self._source, math.prod(shape)), -MAX_BITS).reshape(shape)

    def skip(self, name: str, count: int = 1) -> None:
        """Leave out planned releases, for a reason that no private data decides. The guarantee still counts them."""
        self._count(self._releases[name], checks.count("count", count))
        self._sampled.pop(name, None)

    def finish(self) -> None:
        """Check that everything planned was released or skipped."""
        if any(self._left.values()):
            missing = ((name, left, self._releases[name].count) for name, left in self._left.items() if left)
            told = ", ".join(f"{name!r} ({left} of {planned})" for name, left, planned in missing)
            raise PlanViolationError(f"planned but neither released nor skipped: {told}")

    def _count(self, release: Release, count: int) -> None:
        """Take so many off what is left of a release, or refuse."""
        left = self._left[release.name]
        if count > left:
            told = f"release {release.name!r} is planned {release.count} times, of which {left} are left"
            raise PlanViolationError(f"{told}; asked for {count}")
        self._left[release.name] -= count
        if self._whole is not None:
            whole, prefix = self._whole
            whole._count(whole._releases[prefix + release.name], count)
        if self._progress is not None:
            planned = sum(one.count for one in self._releases.values())
            self._progress(release.name, planned - sum(self._left.values()), planned)

    def __enter__(self) -> Self:
        # Whatever the user has set: that a number overflows, or underflows, tells of the row that it comes from.
        self._arithmetic = np.errstate(all="ignore")
        self._arithmetic.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self._arithmetic.__exit__(kind, error, trace)
        if error is None:
            self.finish()
        elif any(self.made.values()):
            planned = sum(release.count for release in self._releases.values())
            error.add_note(
                f"{sum(self.made.values())} of {planned} planned releases were made before this error: count the whole"
                " budget as spent"
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Gate cannot be pickled or copied: its releases could then be made twice")
