"""Protocol "feature-sharing": Frank-Wolfe between parties that share noisy sketches of the columns in the model.

After Lou and Cheung's Algorithm 2, with noise that covers what is released. In iteration t the parties of the blocks
that were drawn each draw a signed column of theirs by the exponential mechanism; the coordinator moves the weights
towards that vertex by step 2 / (p t + 2) (`rules.universal_step`) and tells everybody what the columns now predict. A
column's sketch is released the first time that others need it, and reused for free.

Rounds:
    bounds     an entry bound of each party and the range of the target, unless declared (`bounds`)
    labels     the label holder: a noisy sketch of the labels (labels="sketched"), how far most of them reach (squared
               loss), a first intercept
    draw       each iteration: a signed column of each drawn block, with its sketch where it is new; a round asks a
               party for one
    share      geometry="best": the sketch of the column that won, where it is new
    labels     a last intercept

geometry:
    "product"  each block of columns with an l1 ball of its own, l1_radius over the number of blocks. That is less than
               the whole ball: no block can have more than its part of the radius. A block moves when it was drawn.
    "serial"   one party in each iteration, on the whole ball. A party may also draw "stay": without it, vertices of all
               parties would be mixed evenly whatever the data says.
    "best"     all parties draw and release the noisy value of what they drew; the best one moves the model, on the
               whole ball, and only its column is shared.

sampling: which blocks move in an iteration, drawn from a public seed (`samplings`). p is the smallest probability with
which a block is drawn.

What a party knows exactly it uses exactly: predictions of its own columns are computed from the columns and only those
of the others come from sketches. With one party nothing is sketched. Sketched predictions are shrunk where they are
mostly noise (`model.shrinkage`). The intercept is a public number that moves by noisy sums of residuals, which
the label holder releases.

Exactness. Without noise (infinite epsilon; the default sketch is then the identity) the iterates are those of plain
Frank-Wolfe on the pooled, bounded data: on the ball for "best", block by block on the product of balls for "product".

Privacy
-------
Unit: a row, of which every party holds a part, so that all releases of all parties compose. Entries are clipped to
|a| <= B, targets to a half-width Y. The residual of a row is clipped to |r| <= R in the space of rows, where it depends
on that row and on the question alone, and never in the space of sketches, where all rows are mixed. B, Y, R are public
or follow from the question, and whatever a question says, noise is calibrated to what was clipped to.

index       scores -sign sum_i a_ij r_i of the signed columns: a row moves each by at most B R, so their spread is 2 B R
            (replace-one: 4 B R). "stay" has the score -sum_i r_i clip(prediction_i / l1_radius, -B, B): the same.
            The sign is drawn with the column. e0^2 / 8 of zCDP.
value       one such score, "best" only: B R (2 B R).
column      J a + noise: B c_J (2 B c_J), with c_J the largest column norm of the public sketch J. No 1/n.
labels      J y + noise, labels="sketched": Y c_J (2 Y c_J), once.
reach       a histogram of |y|, in which a row counts once: 1 (sqrt(2)), for the squared loss, once. R follows from it.
intercept   sum_i r_i at the label holder: R (2 R), n_iter + 2 times.

Float sums are part of the sensitivities (`float_sum_slack`; each row's term is computed by itself). How many columns of
a block a party may share is fixed before, and paid for whether it does or not; when it has shared them all it draws
among those, which is public. A party shares columns that it drew itself, and no other.

Which blocks are drawn is public randomness: a function of the study, fixed before any data is read. So the plan counts
the draws and columns of each party as they will be, and the guarantee is that of this one order of blocks, whatever it
is: nothing is gained from its being random, and nothing is lost where somebody foresees it. (It cannot come from
a gate: gates of different parties draw different numbers, and the coordinator has none.) A party keeps to the order by
itself, by how often it has drawn; a question does not say in which block. What one row does to a score is the same
for any set of candidates.

labels="shared": parties see labels as they are; they are protected against the coordinator and everybody else.
labels="sketched": others than the holder work with J^T of the noisy sketch, which is public, in place of the labels;
derivatives of all three losses are linear in a label, so that this is right on average.

Assumptions: a party's noise is known to that party alone. One that tells it to the coordinator gives away its own
releases, and nothing of the others'.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tacit._types import Floats
from tacit.federated.options import FeatureSharing
from tacit.federated.protocols import columns as tables
from tacit.federated.protocols.base import Answer, Arrays, Holding, Protocol, Question, RefusedError, Rounds
from tacit.federated.protocols.bounds import STEP as BOUNDS
from tacit.federated.protocols.bounds import Bounds, Magnitudes, part_beyond
from tacit.federated.protocols.feature_sharing.model import DRAW, LABELS, SHARE, SharedModel
from tacit.federated.protocols.feature_sharing.residuals import (
    Residuals,
    View,
    centred,
    half_width,
    limit_of,
    residuals,
)
from tacit.federated.protocols.feature_sharing.rules import (
    Block,
    Rules,
    options,
    releases,
    releases_values,
    sketches_labels,
    universal_step,
)
from tacit.federated.sketches import Sketch, sketch_for
from tacit.federated.study import Study
from tacit.privacy import Gate, Plan, float_sum_slack
from tacit.privacy.mechanisms import GaussianVector, Selection, Sensitivity, SignedVertex


class FeatureSharingProtocol(Protocol):
    """Private Frank-Wolfe between parties; its options are `tacit.federated.FeatureSharing`."""

    name = FeatureSharing.name

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.bounds = Bounds(study)
        self.rules = Rules.of(study)
        self.geometry = options(study).geometry
        self.sketch: Sketch | None = sketch_for(study) if len(study.members) > 1 else None
        self._bounded: WeakKeyDictionary[Holding, tuple[float, Any]] = WeakKeyDictionary()

    def plan(self) -> Plan:
        """Bounds, then what the label holder says of the labels, then each party's draws, values and columns."""
        bounding = self.bounds.releases()
        rest = 1.0 - sum(release.share or 0.0 for release in bounding)
        plan = Plan(*bounding, *releases(self.rules, rest))
        tellers = {release.name.partition("/")[0] for release in plan.releases}
        idle = [name for name in self.study.names if name not in tellers]
        if idle:
            raise ValueError(
                f"no block of {', '.join(idle)} is drawn in {len(self.rules.turns)} iterations, so that nothing is"
                " asked there: raise n_iter, or take another seed or sampling"
            )
        return plan

    def coordinate(self) -> Rounds:
        """Iterations, each with a round for each block that the busiest party has in it; "best" may need one more."""
        study, rules = self.study, self.rules
        found: Mapping[str, Arrays] = {}
        if self.bounds.needed:
            found = yield self.bounds.questions()
        model = SharedModel(self, self.sketch, self.bounds.entry_bounds(found), self.bounds.y_bounds(found))
        if study.fit_intercept or sketches_labels(self.study) or study.loss == "squared":
            model.hear_labels((yield model.ask_labels())[study.label_holder])
        for t, turn in enumerate(rules.turns):
            drawn: dict[Block, Arrays] = {}
            for now in rules.rounds(turn):
                questions = {name: model.question(name, DRAW) for name in now}
                if study.fit_intercept:
                    questions = model.ask_labels() | questions
                answers = yield questions
                if study.fit_intercept:
                    model.hear_labels(answers[study.label_holder])
                drawn |= {block: answers[name] for name, block in now.items()}
            winners = model.move(drawn, universal_step(rules.least, t), len(rules.blocks))
            missing = [pick for pick in winners if pick not in model.sketches]
            needed = t + 1 < len(rules.turns) or study.fit_intercept
            if self.geometry == "best" and self.sketch is not None and missing and needed:
                ((name, column),) = missing
                answer = (yield {name: model.share_question(name, column)})[name]
                model.keep_sketch(name, column, answer)
        if study.fit_intercept:
            model.hear_labels((yield model.ask_labels())[study.label_holder])
        return model.final()

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """A party's side of one round; see the module for what each release costs."""
        if question.step == BOUNDS:
            return Answer(self.bounds.answer(holding, question, gate))
        if question.step == LABELS:
            return self._answer_labels(holding, question, gate)
        if question.step == DRAW:
            return self._answer_draw(holding, question, gate, memory)
        if question.step == SHARE:
            return self._answer_share(holding, question, gate, memory)
        raise RefusedError("feature-sharing has no step of this name")

    def _answer_labels(self, holding: Holding, question: Question, gate: Gate) -> Answer:
        if holding.name != self.study.label_holder:
            raise RefusedError("this party does not speak for the labels")
        view, X = self._read(holding, question)
        released: dict[str, Any] = {}
        if sketches_labels(self.study) and gate.left("labels"):
            assert self.sketch is not None
            assert holding.targets is not None
            targets = centred(self.study, holding.targets, view.low, view.high)
            released["labels"] = self._sketched(gate, "labels", targets, half_width(self.study, view.low, view.high))
        if self.study.loss == "squared" and gate.left("reach"):
            released["reach"] = self._reach(holding, view, gate)
        if self.study.fit_intercept:
            found = residuals(self.study, X, holding.targets, view, self.sketch)
            released["intercept"] = self._residual_sum(gate, found, view.limit)
        if not released:
            raise RefusedError("the labels are not asked for in this study, or were released before")
        return Answer(released)

    def _answer_draw(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        study = self.study
        drawn, shared = _remembered(memory, "drawn"), _remembered(memory, "shared")
        if not gate.left("index"):
            raise RefusedError("this party has drawn as often as the study says")
        view, X = self._read(holding, question)
        found = residuals(study, X, holding.targets, view, self.sketch)
        scores = np.asarray(X.T @ found.values, dtype=np.float64)
        blocks = self.rules.draws(holding.name)
        block, last = blocks[-gate.left("index")], gate.left("index") == 1
        for_others = self.sketch is not None and not (last and self.rules.unshared(holding.name))
        allowed = np.arange(block.start, block.stop)
        known = np.intersect1d(shared, allowed)
        if for_others and len(known) == self.rules.shared(holding.name)[block]:
            allowed = known
        released: dict[str, Any] = {}
        memory = dict(memory)
        column, sign = self._draw(gate, view, found, scores, allowed)
        released["index"] = np.array([sign * (column + 1)], dtype=np.int32)
        if releases_values(study):
            change = self._change(view.bound * view.limit)
            value = GaussianVector(Sensitivity.vector(change), bound=study.n_rows * change)
            released["value"] = gate.release("value", value, [-sign * scores[column]])
        if sign:
            if column not in drawn:
                memory["drawn"] = np.union1d(drawn, column).astype(np.int32)
            if self.geometry != "best" and for_others and column not in shared:
                released["column"] = self._sketched(gate, "column", _column(X, column), view.bound)
                memory["shared"] = np.union1d(shared, column).astype(np.int32)
        if study.fit_intercept and holding.name == study.label_holder:
            released["intercept"] = self._residual_sum(gate, found, view.limit)
        return Answer(released, memory)

    def _answer_share(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """The sketch of a column that this party drew before, and did not share yet."""
        shared = _remembered(memory, "shared")
        asked = question.arrays.get("column")
        if self.geometry != "best" or self.sketch is None or set(question.arrays) != {"bound", "column"}:
            raise RefusedError("columns are not asked for in this study, or not like this")
        if asked is None or np.shape(asked) != (1,) or asked.dtype.kind != "i":
            raise RefusedError("a question for a column names one column")
        column = int(asked[0])
        if column not in _remembered(memory, "drawn") or column in shared:
            raise RefusedError("a party shares columns that it drew itself, each once")
        bound = limit_of(question.arrays["bound"])
        released = self._sketched(gate, "column", _column(self._clipped(holding, bound), column), bound)
        return Answer({"column": released}, {**memory, "shared": np.union1d(shared, column).astype(np.int32)})

    def _read(self, holding: Holding, question: Question) -> tuple[View, Any]:
        """What the question says, and this party's columns clipped to it."""
        features = self.study.member(holding.name).n_features
        view = View.read(question.arrays, features, self.sketch, labels=holding.targets is None)
        return view, self._clipped(holding, view.bound)

    def _clipped(self, holding: Holding, bound: float) -> Any:
        """Columns clipped to a bound; the last ones are kept, as the bound does not change in an honest run."""
        kept = self._bounded.get(holding)
        if kept is None or kept[0] != bound:
            kept = self._bounded[holding] = (bound, tables.clipped(holding.X, bound))
        return kept[1]

    def _change(self, contribution: float) -> float:
        """How much one row can change a float sum of contributions, products of two numbers, of at most this size."""
        return contribution + float_sum_slack(self.study.n_rows + 1, contribution)

    def _draw(self, gate: Gate, view: View, found: Residuals, scores: Floats, allowed: Any) -> tuple[int, int]:
        """(column, sign); (0, 0) is "stay"."""
        change = self._change(view.bound * view.limit)
        if self.geometry != "serial":
            place, sign = gate.release("index", SignedVertex(Sensitivity.vector(change)), scores[allowed])
            return int(allowed[place]), sign
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = np.clip(np.nan_to_num(found.predictions / self.study.l1_radius), -view.bound, view.bound)
        stay = -float(predicted @ found.values)
        candidates = np.concatenate([-scores[allowed], scores[allowed], [stay]])
        pick = gate.release("index", Selection(Sensitivity(2.0 * change, 4.0 * change)), candidates)
        if pick == len(candidates) - 1:
            return 0, 0
        return int(allowed[pick % len(allowed)]), 1 if pick < len(allowed) else -1

    def _reach(self, holding: Holding, view: View, gate: Gate) -> Floats:
        """What few of the targets lie beyond, counted from the middle of their range."""
        assert holding.targets is not None
        sizes = np.abs(centred(self.study, holding.targets, view.low, view.high))
        found = Magnitudes.released(gate, "reach", sizes, self.study.n_rows).bound(part_beyond(self.study))
        return np.array([half_width(self.study, view.low, view.high) if found is None else found])

    def _residual_sum(self, gate: Gate, found: Residuals, limit: float) -> Floats:
        change = self._change(limit)
        mechanism = GaussianVector(Sensitivity.vector(change), bound=self.study.n_rows * change)
        return gate.release("intercept", mechanism, [found.values.sum()])

    def _sketched(self, gate: Gate, name: str, values: Floats, bound: float) -> Floats:
        """A noisy sketch of values of at most `bound` in size."""
        assert self.sketch is not None
        return self.sketch.release(gate, name, values[:, None], bound)[:, 0]


def _column(X: Any, column: int) -> Floats:
    taken = X[:, [column]]
    return np.asarray(taken.toarray() if hasattr(taken, "toarray") else taken, dtype=np.float64)[:, 0]


def _remembered(memory: Arrays, name: str) -> Any:
    return np.asarray(memory.get(name, np.empty(0, dtype=np.int32)))
