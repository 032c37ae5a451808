"""A planned evaluation: which people a study holds out, and what it says of its models on them.

Who is held out follows from public numbers alone: the number of people, the share, and the study's seed. Every place of
a row gets a keyed hash, and the places with the lowest ones are held out. Where parties have ids, a place follows from
the keyed hash of the id, under the parties' secret; without ids it is the number of the row. So the people held out are
fixed before a value is read, are the same at all parties, and there are as many as the study says.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tacit._types import Flags
from tacit.federated.options import Marginals, Options, ProtocolOptions, refuse_unknown
from tacit.privacy import checks
from tacit.privacy.public import PublicDraws

MetricName = Literal["r2", "mean_squared_error", "log_loss"]
METRICS: dict[str, tuple[MetricName, ...]] = {"squared": ("r2", "mean_squared_error"), "logistic": ("log_loss",)}
"""What can be told of a loss; first what is told if nothing else is said."""

_DOMAIN = b"tacit.federated held out:"
_MOST_RADII = 100


@dataclass(eq=False, repr=False, kw_only=True)
class Evaluation(Options):
    """A share of the people on whom a study judges its models, and chooses its l1 radius. They train no model.

    It takes people, and no budget: each person is either trained on or held out, and what is released about the one
    part and about the other together gives away no more than the larger of both.

    Parameters
    ----------
    share : float, default=0.2
        The part of the people that is held out.
    metric : {"r2", "mean_squared_error", "log_loss"}, default=None
        What is released of each model: for the squared loss one of the first two, for the logistic loss the last. None:
        "r2" or "log_loss".
    seed : int, default=0
        The public number that decides who is held out. Studies about the same people that have the same seed and share
        hold out the same ones, so leave it alone.

    Examples
    --------
    >>> from tacit.federated import Evaluation, FederatedLasso
    >>> FederatedLasso(l1_radius=[1.0, 2.0, 4.0], evaluation=Evaluation(share=0.25)).get_params()["evaluation__share"]
    0.25
    """

    name: ClassVar = "evaluation"
    share: float = 0.2
    metric: MetricName | None = None
    seed: int = 0

    def _check(self) -> None:
        self.share = checks.open_unit("share", self.share)
        if self.metric is not None:
            checks.one_of("metric", self.metric, get_args(MetricName))
        self.seed = checks.count("seed", self.seed, least=0)

    def of(self, loss: str) -> MetricName:
        """The metric for a loss; one that is not told of it is refused."""
        known = METRICS.get(loss)
        if known is None:
            raise ValueError(
                f"an evaluation serves the losses {', '.join(map(repr, METRICS))}, and the study's is {loss!r}"
            )
        if self.metric is not None and self.metric not in known:
            raise ValueError(f"of the loss {loss!r} an evaluation tells {' or '.join(known)}, not {self.metric}")
        return self.metric or known[0]

    def n_held_out(self, n_rows: int) -> int:
        """How many people are held out of so many; both parts must have somebody."""
        count = round(self.share * n_rows)
        if not 0 < count < n_rows:
            raise ValueError(f"of {n_rows:,} people a share of {self.share!r} leaves one part of the study empty")
        return count

    def held_out(self, n_rows: int) -> Flags:
        """Which places are held out."""
        seed = int.from_bytes(hashlib.sha256(_DOMAIN + str(self.seed).encode()).digest()[:7], "big")
        lowest = np.argsort(PublicDraws(seed).words(n_rows), kind="stable")[: self.n_held_out(n_rows)]
        flags = np.zeros(n_rows, dtype=np.bool_)
        flags[lowest] = True
        return flags


def agreed_evaluation(told: object) -> Evaluation | None:
    """An evaluation as a study holds it, from an object or the table of a study file."""
    if told is None:
        return None
    if isinstance(told, Mapping):
        refuse_unknown("the evaluation of a study", told, ["share", "metric", "seed"])
        told = Evaluation(**told)
    if not isinstance(told, Evaluation):
        raise TypeError(f"evaluation must be an Evaluation or None, got {type(told).__name__}")
    return told.agreed()


def agreed_radii(told: Any, size: Any) -> float | tuple[float, ...]:
    """One l1 radius, or several to choose from: different ones, in increasing order. `size` checks a number."""
    if isinstance(told, str) or not isinstance(told, Iterable):
        return size("l1_radius", told)
    radii = tuple(sorted(size("l1_radius", radius) for radius in told))
    if not 0 < len(radii) <= _MOST_RADII or len(set(radii)) < len(radii):
        raise ValueError(f"l1_radius must be one number, or at most {_MOST_RADII} different ones to choose from")
    return radii


def check_evaluation(
    evaluation: Evaluation | None,
    radii: Sequence[float],
    loss: str,
    labels: str,
    protocol: ProtocolOptions,
    outputs: int,
) -> None:
    """Refuse what a study cannot judge its models by, and several radii without anything to choose by."""
    if evaluation is None:
        if len(radii) > 1:
            raise ValueError("several l1 radii are chosen from by an evaluation: agree on one, or on a single radius")
        return
    evaluation.of(loss)
    if not isinstance(protocol, Marginals):
        raise ValueError("an evaluation needs the moments of protocol 'marginals'")
    if labels == "sketched":
        raise ValueError("an evaluation needs labels='shared', or labels='held' with Marginals(products='masked')")
    if loss == "logistic" and protocol.products != "masked":
        raise ValueError(
            "with products='local' nobody learns enough of margins of several parties to tell a log-loss: an evaluation"
            " of the loss 'logistic' needs Marginals(products='masked') with labels='held'"
        )
    if outputs > 1:
        raise ValueError(
            "an evaluation tells the log-loss of two classes: of more, agree on one l1_radius and leave it out"
        )


@dataclass(frozen=True)
class HeldOut:
    """What a study released of its models on the people whom it held out.

    Attributes
    ----------
    metric : str
        What was measured.
    n_rows : int
        How many people were held out.
    value, noise : float
        The score of the study's model, and the standard error that the noise gives it, from released numbers; NaN and
        infinity where the noise hides the score. It leaves out the error that so many people have anyway.
    chosen : int
        The place of that model among all; by the least squared error or log-loss.
    radii : tuple of float
        The l1 radii of all models, in increasing order.
    values, noises : tuple of float
        What they were chosen by; log-losses are as for normal margins of each class. That of the chosen one is a little
        too good, as noise took part in the choice.
    """

    metric: str
    n_rows: int
    value: float
    noise: float
    chosen: int
    radii: tuple[float, ...]
    values: tuple[float, ...]
    noises: tuple[float, ...]

    def __post_init__(self) -> None:
        checks.one_of("metric", self.metric, get_args(MetricName))
        checks.count("n_rows", self.n_rows)
        lists = (self.radii, self.values, self.noises)
        if not all(isinstance(numbers, tuple) and all(isinstance(v, float) for v in numbers) for numbers in lists):
            raise ValueError("an evaluation has a radius, a score and its noise for each model")
        if not isinstance(self.value, float) or not isinstance(self.noise, float) or len(set(map(len, lists))) > 1:
            raise ValueError("an evaluation has as many scores as radii, and one of the model that was chosen")
        if checks.count("chosen", self.chosen, least=0) >= len(self.radii):
            raise ValueError("an evaluation must have chosen one of its radii")

    @property
    def l1_radius(self) -> float:
        """The radius that was chosen."""
        return self.radii[self.chosen]

    def __str__(self) -> str:
        among = "" if len(self.radii) == 1 else f", of {len(self.radii)}"
        number = (
            "is hidden by the noise" if math.isnan(self.value) else f"{self.value:.4f} ± {self.noise:.4f} from noise"
        )
        return f"{self.metric} {number}, on {self.n_rows:,} people held out; l1_radius {self.l1_radius:g}{among}"
