"""How a study trains: the protocol and the public sketch, as objects with the options of their own.

They hold parameters and nothing else. `get_params` and `set_params` are scikit-learn's, so that `protocol__n_selected`
can be set in a search. A string is a short form for one of them with its defaults: "marginals" for `Marginals()`,
"gaussian" for `Sketching(kind="gaussian")`. What the options mean for a study is worked out in `protocols` and
`sketches`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args

from sklearn.base import BaseEstimator

from tacit.privacy import checks

Cross = Literal["auto", "sketched", "zero"]
Products = Literal["local", "masked"]
Geometry = Literal["product", "serial", "best"]
NamedSampling = Literal["all", "one", "cyclic", "nice", "distributed"]
WeightedSets = tuple[tuple[float, tuple[int, ...]], ...]
SketchKind = Literal["sparse-sign", "gaussian"]


class Options(BaseEstimator):
    """Parameters that a study holds. Two of one class with the same values are equal."""

    def agreed(self) -> Self:
        """A copy with checked values that cannot be changed any more: the digest of a study stands for them."""
        copy = type(self)(**self.get_params())
        copy._check()
        copy.__dict__["_agreed"] = True
        return copy

    def _check(self) -> None:
        """Raise for values that make no sense, and keep plain numbers."""
        raise NotImplementedError

    def _count(self, *names: str) -> None:
        """Keep parameters as whole numbers from 1 on; None is left as it is."""
        for name in names:
            if getattr(self, name) is not None:
                setattr(self, name, checks.count(name, getattr(self, name)))

    def __setattr__(self, name: str, value: object) -> None:
        if "_agreed" in vars(self):
            raise AttributeError(f"{type(self).__name__} is part of a study, which does not change; make a new one")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.get_params() == self.get_params()

    def __hash__(self) -> int:
        return hash((type(self), *self.get_params().values()))


@dataclass(eq=False, repr=False, kw_only=True)
class Marginals(Options):
    """Protocol "marginals": every party releases the moments of a few of its columns, once.

    Parameters
    ----------
    n_selected : int, default=None
        How many columns each party selects. None: a rule in public numbers.
    cross : {"auto", "sketched", "zero"}, default="auto"
        Where second moments between columns of different parties come from. "auto": a third round, if a rule in public
        and released numbers finds it worth its budget. It sketches the columns or one score of them, or releases the
        products with the target once more. "sketched": always a sketch. "zero": no such round, they are taken as zero.
    products : {"local", "masked"}, default="local"
        "local": each party releases what it can compute alone, and nobody has to be trusted. "masked", with
        labels="held": parties send their blocks under masks, all columns are taken, and the coordinator opens noisy
        sums of products between parties. That is nearly as exact as one table, and needs more trust: the coordinator
        colludes with no party and is hosted by none, and parties follow the protocol (docs/threat-model.md).

    Examples
    --------
    >>> from tacit.federated import FederatedLasso, Marginals
    >>> FederatedLasso(l1_radius=2.0, protocol=Marginals(n_selected=4)).set_params(protocol__cross="zero").protocol
    Marginals(cross='zero', n_selected=4)
    """

    name: ClassVar = "marginals"
    n_selected: int | None = None
    cross: Cross = "auto"
    products: Products = "local"

    def _check(self) -> None:
        self._count("n_selected")
        checks.one_of("cross", self.cross, get_args(Cross))
        checks.one_of("products", self.products, get_args(Products))
        if self.products == "masked" and (self.n_selected is not None or self.cross != "auto"):
            raise ValueError(
                "products='masked' takes all columns and all their products: leave out n_selected and cross"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureSharing(Options):
    """Protocol "feature-sharing": Frank-Wolfe between parties, which share noisy sketches of columns in the model.

    Parameters
    ----------
    n_iter : int, default=None
        Iterations. None: a rule in public numbers.
    n_shared : int, default=None
        Distinct columns that a party may share. None: a rule in public numbers.
    geometry : {"product", "serial", "best"}, default="product"
        How the l1 ball is divided between the parties. "product": each block of columns has a ball of its own; a
        party's columns are one block unless `blocks` says otherwise, and the radii are equal and add up to l1_radius.
        "serial": one party after the other moves on the whole ball. "best": all parties draw a column, and the best
        one moves on the whole ball. Without noise the whole ball has the better models; with noise "product" was ahead
        on average, and it tells of the columns of all parties.
    sampling : {"all", "one", "cyclic", "nice", "distributed"} or tuple, default=None
        Which blocks move in an iteration; drawn anew and independently in each, from `seed`. "all" of them; "one",
        each as likely; "nice": `tau` of them, each set as likely; "distributed": `tau` of each party's; "cyclic": one
        after the other, which is not drawn. A tuple of (probability, numbers of blocks) is any other distribution over
        sets of blocks, which are numbered from 0 on in the order of the parties. None: "all", and "one" for
        geometry="serial", which takes single blocks. "best" takes "all".
    tau : int, default=None
        How many blocks, for "nice" and "distributed".
    blocks : int, default=1
        Into how many blocks of neighbouring columns each party's are divided, for geometry="product".
    choosing : float, default=None
        The part of what is spent on columns that goes into choosing them; the rest is for sketches. None: a rule.
    seed : int, default=0
        The public number from which blocks are drawn.

    Examples
    --------
    >>> from tacit.federated import FeatureSharing
    >>> FeatureSharing(geometry="serial", sampling=((0.7, (0,)), (0.3, (1,))), choosing=0.9)
    FeatureSharing(choosing=0.9, geometry='serial',
                   sampling=((0.7, (0,)), (0.3, (1,))))
    """

    name: ClassVar = "feature-sharing"
    n_iter: int | None = None
    n_shared: int | None = None
    geometry: Geometry = "product"
    sampling: NamedSampling | WeightedSets | None = None
    tau: int | None = None
    blocks: int = 1
    choosing: float | None = None
    seed: int = 0

    def _check(self) -> None:
        self._count("n_iter", "n_shared", "tau", "blocks")
        checks.one_of("geometry", self.geometry, get_args(Geometry))
        self.seed = checks.count("seed", self.seed, least=0)
        if self.choosing is not None:
            self.choosing = checks.real("choosing", self.choosing)
            if not 0.0 < self.choosing < 1.0:
                raise ValueError(f"choosing must lie between 0 and 1, got {self.choosing!r}")
        self._check_sampling()

    def _check_sampling(self) -> None:
        """What the protocol takes, as far as it does not depend on the parties."""
        if isinstance(self.sampling, str):
            checks.one_of("sampling", self.sampling, get_args(NamedSampling))
        elif self.sampling is not None:
            self.sampling = _weighted_sets(self.sampling)
        if (self.tau is not None) != (self.sampling in ("nice", "distributed")):
            raise ValueError("tau goes with sampling='nice' or 'distributed', which need it")
        if self.geometry != "product" and self.blocks != 1:
            raise ValueError("more blocks than one of a party need balls of their own: geometry='product'")
        if self.geometry == "best" and self.sampling not in (None, "all"):
            raise ValueError("geometry='best' compares what all parties drew: its sampling is 'all'")
        if self.geometry == "serial" and not self._draws_one:
            raise ValueError("geometry='serial' moves one party at a time: its sampling draws single blocks")

    @property
    def _draws_one(self) -> bool:
        if isinstance(self.sampling, tuple):
            return all(len(blocks) == 1 for _, blocks in self.sampling)
        return self.sampling in (None, "one", "cyclic")


def _weighted_sets(told: object) -> WeightedSets:
    """Pairs of a probability and numbers of blocks; as tuples, whatever they were read from."""
    if not isinstance(told, list | tuple) or not told:
        raise ValueError("sampling must be a name, or pairs of a probability and numbers of blocks")
    pairs = []
    for pair in told:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[1], list | tuple) or not pair[1]:
            raise ValueError("sampling must be a name, or pairs of a probability and numbers of blocks")
        drawn = tuple(checks.count("a block of sampling", block, least=0) for block in pair[1])
        pairs.append((checks.probability("a probability of sampling", pair[0]), drawn))
    return tuple(pairs)


@dataclass(eq=False, repr=False, kw_only=True)
class Sketching(Options):
    """The public random matrix that compresses columns.

    Parameters
    ----------
    kind : {"sparse-sign", "gaussian"}, default="sparse-sign"
        Its entries: four of +-1/2 in each column, or normal ones.
    size : int, default=None
        Its number of rows. None: a rule in public numbers.
    seed : int, default=0
        The public number that it is drawn from.
    """

    kind: SketchKind = "sparse-sign"
    size: int | None = None
    seed: int = 0

    def _check(self) -> None:
        checks.one_of("kind of a sketch", self.kind, get_args(SketchKind))
        self._count("size")
        self.seed = checks.count("seed", self.seed, least=0)


ProtocolOptions = Marginals | FeatureSharing
PROTOCOLS: dict[str, type[ProtocolOptions]] = {kind.name: kind for kind in (Marginals, FeatureSharing)}


def agreed_protocol(told: object) -> ProtocolOptions:
    """A protocol as a study holds it, from an object, its name, or the table of a study file."""
    if isinstance(told, str):
        checks.one_of("protocol", told, tuple(PROTOCOLS))
        told = PROTOCOLS[told]()
    elif isinstance(told, Mapping):
        kind = PROTOCOLS[checks.one_of("the name of a protocol", told.get("name"), tuple(PROTOCOLS))]
        told = _from_table("protocol", kind, {key: value for key, value in told.items() if key != "name"})
    if not isinstance(told, ProtocolOptions):
        raise TypeError(f"protocol must be one of {', '.join(map(repr, PROTOCOLS))}, or Marginals or FeatureSharing")
    return told.agreed()


def agreed_sketch(told: object) -> Sketching:
    """A sketch as a study holds it, from an object, its kind, or the table of a study file."""
    if isinstance(told, str):
        checks.one_of("sketch", told, get_args(SketchKind))
        told = Sketching(kind=told)  # type: ignore[arg-type]
    elif isinstance(told, Mapping):
        told = _from_table("sketch", Sketching, told)
    if not isinstance(told, Sketching):
        raise TypeError(f"sketch must be one of {', '.join(map(repr, get_args(SketchKind)))}, or Sketching")
    return told.agreed()


def _from_table(what: str, kind: type[ProtocolOptions] | type[Sketching], told: Mapping[str, Any]) -> Options:
    known = [field.name for field in fields(kind)]
    refuse_unknown(f"the {what} of a study", told, known)
    return kind(**told)


def refuse_unknown(what: str, values: Mapping[str, Any], known: list[str]) -> None:
    """Refuse what would otherwise be agreed on by some and ignored by others."""
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{what} has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
