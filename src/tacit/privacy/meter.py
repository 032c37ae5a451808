"""The meter: the only way from a solver to noise.

A meter is opened on a calibrated plan. Mechanisms ask it for a grant before each release; it counts releases, not
random words, and raises when a release is not in the plan, is of another kind, or was already made as often as planned.
`finish` raises when one is missing. A planned release may be left out with `skip`, for a reason that is itself public.
"""

import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.checks import Adjacency
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import MAX_BITS
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import CalibratedPlan, Kind, Release

Progress = Callable[[str, int, int], None]


class PlanViolationError(RuntimeError):
    """A solver made a release that the plan does not hold, or left one out."""


class Grant(NamedTuple):
    """Leave to make one release: its noise multiplier, and the source to draw from."""

    multiplier: float
    source: NoiseSource


class Meter:
    """Hands out noise for the releases of a plan, each as often as planned.

    Parameters
    ----------
    calibrated : CalibratedPlan
        What may be released, and with which multipliers.
    source : NoiseSource
        Where the noise comes from.
    progress : callable, optional
        Called as progress(name, made, planned) after each release: how far the plan has come, which is public.
    made : mapping of str to int, optional
        How many releases of each name were made under this plan before, as a ledger on disk holds them.

    Examples
    --------
    >>> from tacit.privacy import Budget, NoiseSource, Plan, Release
    >>> from tacit.privacy.mechanisms import GaussianVector, Sensitivity
    >>> calibrated = Plan(Release("sum", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6))
    >>> with calibrated.meter(NoiseSource()) as meter:
    ...     noisy = GaussianVector(Sensitivity.vector(1.0)).release(meter, "sum", [3.0, 4.0])
    """

    def __init__(
        self,
        calibrated: CalibratedPlan,
        source: NoiseSource,
        progress: Progress | None = None,
        made: Mapping[str, int] | None = None,
    ) -> None:
        self._calibrated = calibrated
        self._source = source
        self._progress = progress
        self._releases = {release.name: release for release in calibrated.plan.releases}
        self._left = {release.name: release.count for release in calibrated.plan.releases}
        self._sampled: dict[str, int] = {}  # samples drawn for releases that are still to be made
        for name, count in (made or {}).items():
            release = self._planned(name)
            self._left[name] -= checks.count("made", count, least=0)
            if self._left[name] < 0:
                raise PlanViolationError(f"release {name!r} was made {count} times, of {release.count} planned")

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation that sensitivities are to be taken for."""
        return self._calibrated.budget.adjacency

    @property
    def seeded(self) -> bool:
        """Whether the noise can be reproduced by someone who knows a number."""
        return self._source.seeded

    def left(self, name: str) -> int:
        """How many releases of this name the plan still allows."""
        return self._left[self._planned(name).name]

    def multiplier(self, name: str) -> float:
        """Noise over sensitivity of the named release: public, and what a solver weighs its answers by."""
        return self._calibrated.multiplier(self._planned(name).name)

    def grant(self, name: str, kind: Kind, count: int = 1) -> Grant:
        """Count one release, or several of them, and give what is needed to make it."""
        release = self._planned(name)
        if release.kind != kind:
            raise PlanViolationError(f"release {name!r} is planned as {release.kind}, not as {kind}")
        self._count(release, checks.count("count", count))
        if release.sampling < 1.0 and self._sampled.get(name) != count:
            raise PlanViolationError(
                f"release {name!r} is planned on a fresh sample of the rows; call sample() before it"
            )
        self._sampled.pop(name, None)
        return Grant(self._calibrated.multiplier(name), self._source)

    def sample(self, name: str, n: int) -> NDArray[np.int64]:
        """The rows that take part in the next release of this name, by the coin the plan fixed."""
        return self.samples(name, n, 1)[0]

    def samples(self, name: str, n: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that take part in each of the next releases, one after the other, and where each sample starts."""
        release = self._planned(name)
        if name in self._sampled:
            raise PlanViolationError(f"release {name!r} has its sample; a second one to choose from is not planned")
        drawn = samplers.poisson_samples(self._source, n, release.sampling, checks.count("count", count))
        self._sampled[name] = count
        return drawn

    def public_order(self, size: int) -> NDArray[np.int64]:
        """The numbers below `size` in random order: for choices that see no data and need not be secret."""
        return np.argsort(self._source.words(size), kind="stable").astype(np.int64, copy=False)

    def public_draws(self, size: int, count: int) -> NDArray[np.int64]:
        """`count` random numbers below `size`, for the same; uneven by less than size / 2^64."""
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

    def __enter__(self) -> "Meter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Meter cannot be pickled or copied: its releases could then be made twice")
