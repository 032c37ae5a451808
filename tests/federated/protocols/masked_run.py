"""A study with masked products, party by party, with everything that was said and drawn kept."""

from dataclasses import dataclass, field
from itertools import combinations
from unittest.mock import patch

import numpy as np

from tacit.federated import Marginals, Member, Study
from tacit.federated.protocols.base import Holding
from tacit.federated.protocols.marginals.masked import MaskedProtocol, party, words
from tacit.privacy import Gate, NoiseSource
from tacit.privacy.mechanisms import GaussianWords

SECRET = b"sixteen bytes or more"
SIZES = {"a": 3, "b": 2, "c": 4}
HOLDER = "b"
ROWS = 40


def masked_study(**changes):
    members = tuple(Member(name, size, name == HOLDER) for name, size in SIZES.items())
    told = {"name": "m", "loss": "squared", "members": members, "n_rows": ROWS, "l1_radius": 3.0, "labels": "held"}
    told |= {"protocol": Marginals(products="masked"), "y_bounds": (-4.0, 4.0), "epsilon": 1.0, "delta": 1e-6}
    return Study(**(told | changes))


def some_data(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = {name: rng.standard_normal((rows, size)) for name, size in SIZES.items()}
    return X, sum(x[:, 0] for x in X.values()) / 2.0 + 0.3 * rng.standard_normal(rows)


@dataclass
class Run:
    """What happened: the questions and answers of each round, and the noise on each share."""

    protocol: MaskedProtocol
    asked: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    blocks: dict = field(default_factory=dict)
    noise: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    model: object = None

    def arrays(self, name):
        """What a party sent in the last round."""
        answer = self.answers[-1][name]
        return {**answer.releases, **answer.beside}

    def rows(self, name):
        return self.arrays(name)[party.ROWS].view(np.uint64)

    def share(self, name, other):
        return self.arrays(name)[self.protocol.share_name(other)].view(np.uint64)

    def opened(self, one, other):
        return self.share(one, other) + self.share(other, one) + words.product(self.rows(one), self.rows(other))

    @property
    def pairs(self):
        return list(combinations(self.protocol.study.names, 2))


def run(study, X, y, seed=0, absent=None, secret=SECRET):
    """The protocol with given noise. `absent`: this row is in no party's table, and its place is empty."""
    protocol = MaskedProtocol(study)
    done = Run(protocol)
    gates = {
        name: Gate(protocol.promise.part(f"{name}/"), NoiseSource(100 * seed + k)) for k, name in enumerate(study.names)
    }
    here = np.arange(study.n_rows) != absent
    holdings = {n: Holding(n, X[n][here], y[here] if n == HOLDER else None, secret) for n in study.names}
    done.memory = {name: {} for name in study.names}
    whole, draw = party.whole_block, GaussianWords.draw

    def block(agreed, holding, memory):
        found = whole(agreed, holding, memory)
        found = found if absent is None else np.insert(found, absent, np.uint64(0), axis=0)
        done.blocks[holding.name] = found
        return found

    def noted(mechanism, grant, values):
        out = draw(mechanism, grant, values)
        done.noise[grant._gate, grant.name] = out - values
        return out

    rounds = protocol.coordinate()
    with patch.object(party, "whole_block", block), patch.object(GaussianWords, "draw", noted):
        try:
            asked = next(rounds)
            while True:
                answers = {}
                for name, question in asked.items():
                    answers[name] = protocol.answer(holdings[name], question, gates[name], done.memory[name])
                    done.memory[name] |= answers[name].memory
                done.asked.append(asked)
                done.answers.append(answers)
                asked = rounds.send({name: {**a.releases, **a.beside} for name, a in answers.items()})
        except StopIteration as end:
            done.model = end.value
    done.noise = {(n, what): values for n in gates for (gate, what), values in done.noise.items() if gate is gates[n]}
    return done
