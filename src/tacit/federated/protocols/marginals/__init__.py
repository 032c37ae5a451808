"""Protocol "marginals": every party releases the moments of a few of its columns, once, and the coordinator solves.

Rounds, after the greeting:
    bounds      where the range of the target is to be found, or labels are sketched: by the party that holds them
    marginals   each party selects columns by their products with the target and releases, for those, the products, the
                sums and the matrix of second moments
    cross       by a rule: a noisy sketch of the selected columns, or of one score of them, for moments between parties
    again       in place of "cross", where few rows have anything in those columns: the products once more

What is exact. The squared loss over the l1 ball is a function of these moments: with an infinite epsilon (all columns,
sketches of full size) the model is the constrained optimum on the bounded data. With noise, moments between parties are
known through the parties' scores or not at all (`between`), which more rows alone do not mend until the
rule finds the budget large enough for the columns themselves. The logistic loss is minimised as it would be for normal
columns (`moments`), of more than two classes for columns that are normal within each (`several`), whatever the budget.

Privacy
-------
Unit: a row, of which every party holds a part; so all parties' releases compose. Labels t are clipped to public or
released bounds and centred at a released mean, |t| <= Y. A row contributes or not (add-remove), or one contribution is
exchanged for another (replace-one).

label mean       (y - middle) / half-width, in [-1, 1]: 1, and 2.
entry size       B, read off a histogram of |x_ij| with one j for each row (`bounds`): 1, and sqrt(2).
columns          scores |sum_i clip(x_ij, -B, B) u_i|, u the distances of the labels from their middle, clipped to a
                 width W (`bounds`), or t itself with W = Y: a row moves each by at most B W either way, so the spread
                 is 2 B W, and 4 B W. k draws of different columns.
row norm         R, and how many rows are not zero, read off a histogram of the norms of rows over those columns: 1, and
                 sqrt(2).
correlations     rows are clipped to norm R, z = x / R; the outer product of z and (t / Y, b): sqrt(1 + b^2), and twice.
moments          z z^T in Frobenius norm: 1, and sqrt(2).
cross            J z, or J times a score of z clipped to [-1, 1], J the public sketch with column norms at most c_J:
                 c_J, and twice that. Or, once and with the same multiplier, the products z t / Y: 1, and twice that.
labels           (labels="sketched") J t / Y at the party that holds them: c_J, and twice that. The others take J^T of
                 what was released as their t, which is public then, clipped to a Y that follows from it.

More than two classes (shared labels). A label is the one-hot vector e_y less p, what part of all rows each class has as
released, in place of t: |e_y - p| <= Y = max over classes of |e_c - p|. A person's row of indicators is one vector, so
K classes cost what one target costs, and what does not depend on the class is released once:
label mean       counts of the classes, a sum of one-hot vectors: 1, and sqrt(2) where a person changes class.
columns          scores |sum_i clip(x_ij, -B, B) (e_yi - p)|, the norm over classes. A row moves the sum by a vector of
                 norm B Y at most, so the norm by B Y either way: spread 2 B Y, and 4 B Y.
correlations     the outer product of z and ((e_y - p) / Y, b): sqrt(1 + b^2), and twice that.

Questions hold nothing that sensitivities trust: whatever bounds, labels or scores are sent, a party clips to them.
"""

from tacit.federated.protocols.base import Answer, Arrays, Holding, Question, RefusedError, Rounds
from tacit.federated.protocols.marginals import coordinator, party
from tacit.federated.protocols.marginals.rules import Agreement
from tacit.privacy import Gate


class MarginalsProtocol(Agreement):
    """Private selection, then noisy moments; its options are `tacit.federated.Marginals`."""

    def coordinate(self) -> Rounds:
        """One to three rounds."""
        return coordinator.coordinate(self)

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """One of the steps "bounds", "marginals", "cross" and "again"."""
        if question.step == "bounds":
            return party.bounds(self, holding, question, gate)
        if question.step == "marginals":
            return party.marginals(self, holding, question, gate, memory)
        if question.step == "cross" and self.cross is not None:
            return party.cross(self, self.cross, holding, question, gate, memory)
        if question.step == "again" and self.cross is not None and not self.cross.columns:
            return party.again(self, holding, question, gate, memory)
        raise RefusedError("this study has no such step")
