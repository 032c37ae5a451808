"""`Marginals(products="masked")`: products between parties as exact as one table's, through a coordinator in the dark.

Rounds, after the greeting:
    units       each party releases what its rows are clipped to, the holder of the labels their range and mean; and
                sends its hello
    seeds       each party sends a seed to each other one, in boxes that the coordinator cannot open
    products    each party sends its block under a mask, its own noisy moments, and its share of each product
    slopes      (logistic loss, three times) each party releases the sums of its rows times what residuals are on
                average, given what it has itself

Arithmetic is modulo 2^64. X_k is party k's block as whole numbers, the label a column of the holder's; s_k its seed, T
the digest of all that was said, M_k = stream(s_k, T), Z_kl = stream(all seeds, k, l, T), N fresh Gaussian noise:

    U_k = X_k + M_k                          from every party
    Z_kl - X_k' M_l + N^k                    from party k, for k < l
    -Z_kl - M_k' U_l + N^l                   from party l
    U_k' U_l + both = X_k' X_l + N^k + N^l   at the coordinator

The squared loss is a function of these moments, so with an infinite epsilon the model is the constrained optimum on the
bounded data, up to the grid. The logistic loss takes a step by moments, and three by slopes, in which each party's own
columns are as they are and only what they do not tell of the others' is taken as normal (`slopes`). More than two
classes are told apart by moments alone (`several`): there are no slopes.

Privacy
-------
Unit: a row, of which every party holds a part. Neighbours: add-remove or replace-one. In units of the row norm R_k, the
parts of a row have norms a_k <= 1, and sqrt(2) with the label; b_k with the constant column. Labels of more than two
classes are a column each of the holder's block, (e_y - p) / max_c |e_c - p| with p the classes' released parts: of norm
1 at most together, as one label has. So K classes move every sum by what two do.

label range, label mean, row norm   as with `products="local"`
moments                             the outer product of a row at one party: b_k^2, and sqrt(2) b_k^2
products                            the outer product of the parts at two parties: a_k a_l, and 2 a_k a_l
slopes                              a row of norm 1 and the constant, times a number in [-1/2, 1/2]: `slopes`

Assumed, beyond what every study assumes: **the coordinator colludes with no party and no party hosts it; parties follow
the protocol**, which includes their clips. The coordinator may do what it likes. It and one party together know every
raw block. The proof is in docs/guarantees.md, who learns what in docs/threat-model.md.
"""

from collections.abc import Mapping

from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError, Rounds
from tacit.federated.protocols.marginals.masked import coordinator, party, slopes
from tacit.federated.protocols.marginals.masked.rules import MaskedAgreement
from tacit.privacy import Gate


class MaskedProtocol(MaskedAgreement):
    """Noisy moments of all columns, those between parties opened under masks."""

    beside = frozenset({party.KEY, party.CODE, party.BOXES, party.ROWS})
    fresh = frozenset({party.KEYS, party.CODES, party.BOXES, party.HELLOS, party.PRIVATE, party.SEED, party.BLOCK})

    def coordinate(self) -> Rounds:
        """Three rounds, and three more for the logistic loss."""
        return coordinator.coordinate(self)

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """Opened sums in place of masked rows."""
        return coordinator.settled(self, answers)

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """One of the steps "units", "seeds", "products" and "slopes"."""
        if question.step == party.UNITS:
            return party.units(self, holding, question, gate)
        if question.step == party.SEEDS:
            return party.seeds(self, holding, question, memory)
        if question.step == party.PRODUCTS:
            return party.products(self, holding, question, gate, memory)
        if question.step == slopes.STEP:
            return slopes.slopes(self, holding, question, gate, memory)
        raise RefusedError("this study has no such step")
