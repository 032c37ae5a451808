"""The rules of "feature-sharing" for what a study leaves open, and its plan; functions of public numbers."""

import math
from dataclasses import dataclass

from tacit.federated.options import FeatureSharing
from tacit.federated.study import Study
from tacit.privacy import Release
from tacit.privacy.plan import Kind

_PER_ITERATION, _FEWEST, _MOST, _MOST_WITHOUT_NOISE = 100.0, 4.0, 32.0, 500
_INTERCEPT_SHARE, _REACH_SHARE, _LABEL_SHARE, _COLUMN_SHARE, _VALUE_SHARE = 0.05, 0.03, 0.15, 0.25, 0.2


def options(study: Study) -> FeatureSharing:
    """What the study leaves open, or sets, of this protocol."""
    assert isinstance(study.protocol, FeatureSharing)
    return study.protocol


@dataclass(frozen=True)
class Rules:
    """What the study leaves open, worked out from its public numbers.

    Iterations: x / (100 sqrt(K)), at least 4 and at most 32, as each costs a round of the network; K times as many for
    "serial"; 500 without noise. Here x = n sqrt(8 rho) / ln(2 d), half of that for replace-one, is a mean gradient of
    B R over the noise of a single draw among all d columns.

    Columns that a party may share: as many as it draws, without the last one if there is no intercept to follow it. For
    "best", where one party wins each time, twice its even part of the wins.
    """

    turns: tuple[tuple[str, ...], ...]  # who draws in each iteration
    n_shared: int
    unshared: tuple[str, ...]  # whose last draw nobody else needs

    @classmethod
    def of(cls, study: Study) -> "Rules":
        """The rules at n, d, K, epsilon, delta, and what the study sets."""
        names, budget = study.names, study.budget
        K = len(names)
        asked = options(study)
        n_iter = asked.n_iter
        if n_iter is None and not budget.is_private:
            n_iter = _MOST_WITHOUT_NOISE
        elif n_iter is None:
            d = sum(member.n_features for member in study.members)
            doubled = 2.0 if budget.adjacency == "replace-one" else 1.0
            clear = study.n_rows * math.sqrt(8.0 * budget.rho) / doubled / math.log(2.0 * d)
            n_iter = round(min(max(clear / _PER_ITERATION / math.sqrt(K), _FEWEST), _MOST))
            n_iter *= K if asked.geometry == "serial" else 1
        turns: tuple[tuple[str, ...], ...]
        if asked.geometry == "serial":
            if n_iter < K:
                raise ValueError(f"n_iter must be at least {K}, so that every party has a turn; got {n_iter}")
            turns = tuple((names[t % K],) for t in range(n_iter))
            most = -(-n_iter // K)
        else:
            turns = (names,) * n_iter
            most = n_iter if study.fit_intercept else n_iter - 1
        if asked.geometry == "best" and budget.is_private:
            most = min(most, -(-2 * most // K))
        return cls(turns, max(asked.n_shared or most, 1), () if study.fit_intercept else turns[-1])

    def draws(self, name: str) -> int:
        """How often this party draws."""
        return sum(name in turn for turn in self.turns)


def sketches_labels(study: Study) -> bool:
    """Whether the label holder releases a sketch of the labels."""
    return study.labels == "sketched" and len(study.members) > 1


def releases_values(study: Study) -> bool:
    """Whether parties release the values of what they drew."""
    return options(study).geometry == "best" and len(study.members) > 1


def releases(study: Study, rules: Rules, rest: float) -> list[Release]:
    """The releases of all parties, named `party/release`, with shares that add up to `rest`."""
    planned: list[Release] = []
    for name, asked, part_of_rest, count in (
        ("intercept", study.fit_intercept, _INTERCEPT_SHARE, len(rules.turns) + 2),
        ("reach", study.loss == "squared", _REACH_SHARE, 1),
        ("labels", sketches_labels(study), _LABEL_SHARE, 1),
    ):
        if asked:
            share = part_of_rest * rest
            planned.append(Release(f"{study.label_holder}/{name}", "gaussian", share=share, count=count))
            rest -= share
    parts = {"index": 1.0}
    if len(study.members) > 1:
        parts["column"] = _COLUMN_SHARE
        parts["index"] -= _COLUMN_SHARE
    if releases_values(study):
        parts["value"] = _VALUE_SHARE
        parts["index"] -= _VALUE_SHARE
    for member in study.members:
        draws = rules.draws(member.name)
        counts = {"index": draws, "value": draws, "column": min(rules.n_shared, member.n_features)}
        for part, share in parts.items():
            kind: Kind = "exponential" if part == "index" else "gaussian"
            own = share * rest / len(study.members)
            planned.append(Release(f"{member.name}/{part}", kind, share=own, count=counts[part]))
    return planned


def universal_step(least_marginal: float, t: int) -> float:
    """2 / (p_min t + 2), for iterations t = 0, 1, ..."""
    return 2.0 / (least_marginal * t + 2.0)
