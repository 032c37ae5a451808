"""The private mechanisms: each knows the kind of its release and its sensitivity under both adjacencies.

What holds: `Gate.release` calls a mechanism's `draw` with a grant, and noise comes from that grant alone. In the
non-private limit (multiplier 0) a mechanism returns the exact answer; `Vertices`, which only draws, refuses. All
sensitivities are of sums over rows, not of means.
"""

from tacit.privacy.mechanisms.additive import GaussianMatrix, GaussianVector, GaussianWords, LaplaceVector
from tacit.privacy.mechanisms.histogram import Histogram
from tacit.privacy.mechanisms.objective import ObjectivePerturbation
from tacit.privacy.mechanisms.selection import Choice, Quantile, Selection, SignedVertex, Threshold, TopK
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.mechanisms.thresholded import ThresholdedCounts
from tacit.privacy.mechanisms.vertices import BestVertex, VertexSampler, VertexWalk, Vertices, contribution_units
from tacit.privacy.mechanisms.walks import Batches, GaussianSequence, SampledSteps, Tape

__all__ = [
    "Batches",
    "BestVertex",
    "Choice",
    "GaussianMatrix",
    "GaussianSequence",
    "GaussianVector",
    "GaussianWords",
    "Histogram",
    "LaplaceVector",
    "ObjectivePerturbation",
    "Quantile",
    "SampledSteps",
    "Selection",
    "Sensitivity",
    "SignedVertex",
    "Tape",
    "Threshold",
    "ThresholdedCounts",
    "TopK",
    "VertexSampler",
    "VertexWalk",
    "Vertices",
    "contribution_units",
]
