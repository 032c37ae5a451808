"""The private mechanisms: each knows the kind of its release and its sensitivity under both adjacencies.

Every `release` takes a meter and the name of a planned release, and draws its noise from that grant alone. In the
non-private limit (multiplier 0) it returns the exact answer; `Vertices`, which only draws, refuses. All sensitivities
are of sums over rows, not of means.
"""

from tacit.privacy.mechanisms.additive import GaussianMatrix, GaussianVector, LaplaceVector
from tacit.privacy.mechanisms.histogram import Histogram
from tacit.privacy.mechanisms.objective import ObjectivePerturbation
from tacit.privacy.mechanisms.sampled import Batches, SampledSteps
from tacit.privacy.mechanisms.selection import Quantile, Selection, SignedVertex, Threshold, TopK
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.mechanisms.sequence import GaussianSequence, Tape
from tacit.privacy.mechanisms.vertices import VertexSampler, Vertices, contribution_units

__all__ = [
    "Batches",
    "GaussianMatrix",
    "GaussianSequence",
    "GaussianVector",
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
    "TopK",
    "VertexSampler",
    "Vertices",
    "contribution_units",
]
