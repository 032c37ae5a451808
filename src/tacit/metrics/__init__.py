"""Private evaluation: scores on rows about people, each with its own budget and guarantee.

classification   `accuracy_score`, `log_loss`; `Accuracy`, `LogLoss`
ranking          `roc_auc_score`; `RocAuc`
regression       `r2_score`, `mean_squared_error`; `R2`, `MeanSquaredError`
evaluation       `evaluate`: a model, its test rows and one budget for several scores; `evaluate_blocks`
terms            `Terms`: the keyword arguments of all of them, from epsilon to random_state
score            `Score`: the number, how far noise may have moved it, and what it cost
subspaces        `captured_variance_ratio`, `principal_angles`, and three distances; no noise, for public data
predictions      what a model says of each row by itself
release          the path all of them take: plan, calibrate, sum, add noise, read off

A metric is a function of true and predicted values (`roc_auc_score`), or an object with its parameters for `evaluate`
(`RocAuc(bins=50)`).

A score computed on private rows is a release like any other: publish it, or choose a model by it, and it tells
something about those rows. `docs/private-evaluation.md` says when that matters.

Privacy
-------
Unit: one row of the evaluation table, that is its label, its prediction and all that the prediction was made of.
Neighbours: `adjacency`. Mechanism: Laplace or Gaussian noise on sums over rows, whichever is smaller at the budget.
Released: the noisy sums, of which every number in a `Score` is a function. Assumed: the number of rows, the class
labels, all bounds and the model are public (or the model has a guarantee of its own), and a prediction depends on its
row and the model alone.
"""

from tacit.metrics.classification import Accuracy, LogLoss, accuracy_score, log_loss
from tacit.metrics.evaluation import evaluate, evaluate_blocks
from tacit.metrics.ranking import RocAuc, roc_auc_score
from tacit.metrics.regression import R2, MeanSquaredError, mean_squared_error, r2_score
from tacit.metrics.score import Score
from tacit.metrics.subspaces import (
    basis_distance,
    captured_variance_ratio,
    principal_angles,
    projection_distance,
    subspace_distance,
)
from tacit.metrics.terms import Terms

__all__ = [
    "R2",
    "Accuracy",
    "LogLoss",
    "MeanSquaredError",
    "RocAuc",
    "Score",
    "Terms",
    "accuracy_score",
    "basis_distance",
    "captured_variance_ratio",
    "evaluate",
    "evaluate_blocks",
    "log_loss",
    "mean_squared_error",
    "principal_angles",
    "projection_distance",
    "r2_score",
    "roc_auc_score",
    "subspace_distance",
]
