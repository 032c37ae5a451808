"""The rules of "feature-sharing" for what a study leaves open, and its plan; functions of public numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tacit.federated.options import FeatureSharing
from tacit.federated.protocols.feature_sharing.samplings import (
    Distributed,
    Sampling,
    Subsets,
    TauNice,
    elementary,
    uniform_serial,
)
from tacit.federated.study import Study
from tacit.privacy import Release
from tacit.privacy.plan import Kind
from tacit.privacy.public import PublicDraws

_PER_ITERATION, _FEWEST, _MOST, _MOST_WITHOUT_NOISE = 100.0, 4.0, 32.0, 500
_INTERCEPT_SHARE, _REACH_SHARE, _LABEL_SHARE = 0.05, 0.03, 0.15
_CHOOSING = 0.75  # of what is spent on columns
_VALUES = 0.2 / 0.75  # of that, in the values of "best"


def options(study: Study) -> FeatureSharing:
    """What the study leaves open, or sets, of this protocol."""
    assert isinstance(study.protocol, FeatureSharing)
    return study.protocol


@dataclass(frozen=True)
class Block:
    """Neighbouring columns of a party, which move together."""

    party: str
    start: int
    stop: int

    def __contains__(self, key: tuple[str, int]) -> bool:
        """Whether it has this column of this party."""
        party, column = key
        return party == self.party and self.start <= column < self.stop


Turn = tuple[Block, ...]
"""The blocks of an iteration, in the order of parties and columns."""


@dataclass(frozen=True)
class Rules:
    """What the study leaves open, worked out from its public numbers.

    Iterations: x / (100 sqrt(K)), at least 4 and at most 32, as each costs a round of the network; 500 without noise.
    Here x = n sqrt(8 rho) / ln(2 d), half of that for replace-one, is a mean gradient of B R over the noise of a single
    draw among all d columns. So many are the draws of a party on average: of blocks that are drawn with a sum of
    probabilities P there are K / P times as many.

    Columns that a party may share of a block: as many as it draws there. The last one of a party is left out where no
    intercept follows it: nobody else needs it. For "best", where one party wins each time, twice its even part of the
    wins.
    """

    study: Study
    blocks: Turn
    turns: tuple[Turn, ...]  # of each iteration
    least: float  # the probability with which the rarest block is drawn

    @classmethod
    def of(cls, study: Study) -> "Rules":
        """The rules at n, d, K, epsilon, delta, and what the study sets."""
        asked, blocks = options(study), _blocks(study)
        sampling = _sampling(asked, len(study.names), len(blocks))
        mean = float(sampling.marginals.sum())
        count = asked.n_iter or max(round(_draws(study) * len(study.names) / mean), 1)
        source = PublicDraws(asked.seed)
        if asked.sampling == "cyclic":
            if count < len(blocks):
                raise ValueError(f"n_iter must be at least {len(blocks)}, so that all blocks have a turn; got {count}")
            drawn = [[t % len(blocks)] for t in range(count)]
        else:
            drawn = [sampling.draw(source).tolist() for _ in range(count)]
        turns = tuple(tuple(blocks[place] for place in places) for places in drawn)
        return cls(study, blocks, turns, sampling.least_marginal)

    def rounds(self, turn: Turn) -> Iterator[dict[str, Block]]:
        """An iteration by rounds, in each of which a party draws in one block at most."""
        left = list(turn)
        while left:
            now: dict[str, Block] = {}
            for block in left:
                now.setdefault(block.party, block)
            yield now
            left = [block for block in left if now[block.party] != block]

    @cached_property
    def n_rounds(self) -> int:
        """Of all iterations."""
        return sum(len(list(self.rounds(turn))) for turn in self.turns)

    def draws(self, name: str) -> Turn:
        """The blocks that this party draws in, one after the other."""
        return tuple(block for turn in self.turns for block in turn if block.party == name)

    def unshared(self, name: str) -> bool:
        """Whether nobody else needs the last column that this party draws."""
        return not self.study.fit_intercept and any(block.party == name for block in self.turns[-1])

    def shared(self, name: str) -> dict[Block, int]:
        """How many columns of its blocks a party may share, by block."""
        drawn = self.draws(name)
        drawn = drawn[:-1] if self.unshared(name) else drawn
        asked, counts = options(self.study), dict[Block, int]()
        for block in dict.fromkeys(drawn):
            most = drawn.count(block)
            if asked.geometry == "best" and self.study.budget.is_private:
                most = min(most, -(-2 * most // len(self.study.names)))
            counts[block] = min(asked.n_shared or most, block.stop - block.start)
        return counts


def _draws(study: Study) -> float:
    """How often a party draws, on average."""
    budget = study.budget
    if not budget.is_private:
        return _MOST_WITHOUT_NOISE
    d = sum(member.n_features for member in study.members)
    doubled = 2.0 if budget.adjacency == "replace-one" else 1.0
    clear = study.n_rows * math.sqrt(8.0 * budget.rho) / doubled / math.log(2.0 * d)
    return round(min(max(clear / _PER_ITERATION / math.sqrt(len(study.names)), _FEWEST), _MOST))


def _blocks(study: Study) -> Turn:
    """The columns of each party in parts as even as can be."""
    count, found = options(study).blocks, []
    for member in study.members:
        if member.n_features < count:
            raise ValueError(f"blocks must be at most a party's columns; {member.name!r} has {member.n_features}")
        edges = np.cumsum([0, *map(len, np.array_split(np.arange(member.n_features), count))]).tolist()
        found += [Block(member.name, low, high) for low, high in pairwise(edges)]
    return tuple(found)


def _sampling(asked: FeatureSharing, parties: int, n_blocks: int) -> Sampling:
    """The sampling of a study; "cyclic" has the probabilities of "one"."""
    told = asked.sampling or ("one" if asked.geometry == "serial" else "all")
    if isinstance(told, tuple):
        return Subsets(n_blocks, [blocks for _, blocks in told], [share for share, _ in told])
    if told == "nice":
        assert asked.tau is not None
        return TauNice(n_blocks, asked.tau)
    if told == "distributed":
        assert asked.tau is not None
        return Distributed(np.split(np.arange(n_blocks), parties), asked.tau)
    return elementary(n_blocks) if told == "all" else uniform_serial(n_blocks)


def sketches_labels(study: Study) -> bool:
    """Whether the label holder releases a sketch of the labels."""
    return study.labels == "sketched" and len(study.members) > 1


def releases_values(study: Study) -> bool:
    """Whether parties release the values of what they drew."""
    return options(study).geometry == "best" and len(study.members) > 1


def releases(rules: Rules, rest: float) -> list[Release]:
    """The releases of all parties, named `party/release`, with shares that add up to `rest`.

    Each is planned as often as its party's part of the blocks asks for it, and all of a kind have the same noise: what
    is spent on a kind goes to the parties by how often they release it. A party whose blocks were never drawn releases
    none of them.
    """
    study = rules.study
    planned: list[Release] = []
    for name, asked, part_of_rest, count in (
        ("intercept", study.fit_intercept, _INTERCEPT_SHARE, rules.n_rounds + 2),
        ("reach", study.loss == "squared", _REACH_SHARE, 1),
        ("labels", sketches_labels(study), _LABEL_SHARE, 1),
    ):
        if asked:
            share = part_of_rest * rest
            planned.append(Release(f"{study.label_holder}/{name}", "gaussian", share=share, count=count))
            rest -= share
    draws = {name: len(rules.draws(name)) for name in study.names}
    counts = {"index": draws}
    if len(study.members) > 1:
        counts["column"] = {name: sum(rules.shared(name).values()) for name in study.names}
    if releases_values(study):
        counts["value"] = draws
    for what, part in _parts(study, [what for what, count in counts.items() if any(count.values())]).items():
        kind: Kind = "exponential" if what == "index" else "gaussian"
        total = sum(counts[what].values())
        planned += [
            Release(f"{name}/{what}", kind, share=part * rest * count / total, count=count)
            for name, count in counts[what].items()
            if count
        ]
    return planned


def _parts(study: Study, made: list[str]) -> dict[str, float]:
    """What is spent on columns, in parts by what is released of them."""
    choosing = options(study).choosing or _CHOOSING
    values = _VALUES if "value" in made else 0.0
    if "column" not in made:
        return {"index": 1.0 - values} | ({"value": values} if values else {})
    parts = {"index": (1.0 - values) * choosing, "column": 1.0 - choosing, "value": values * choosing}
    return {what: parts[what] for what in made}


def universal_step(least_marginal: float, t: int) -> float:
    """2 / (p_min t + 2), for iterations t = 0, 1, ..."""
    return 2.0 / (least_marginal * t + 2.0)
