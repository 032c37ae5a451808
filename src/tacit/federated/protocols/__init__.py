"""The protocols, and which of them a study agreed on."""

from tacit.federated.options import Marginals
from tacit.federated.protocols.base import Protocol
from tacit.federated.study import Study


def protocol_for(study: Study) -> Protocol:
    """The protocol that the study agreed on; what it does not serve raises here, before any data is read."""
    return _prepared(study, _inner(study)) if study.evaluation is None else _evaluated(study)


def _evaluated(study: Study) -> Protocol:
    """A protocol for those people who are not held out, with a part for the others."""
    from tacit.federated.protocols.evaluated import Evaluated, training_study
    from tacit.federated.protocols.marginals.held_out import HeldOutMarginals
    from tacit.federated.protocols.marginals.masked.held_out import HeldOutMasked

    told = training_study(study)
    training = _inner(told)
    kind = HeldOutMasked if study.masked else HeldOutMarginals
    part = kind(training, study.n_rows - told.n_rows, len(study.radii))  # type: ignore[arg-type]
    return Evaluated(study, _prepared(told, training), part)


def _prepared(study: Study, inner: Protocol) -> Protocol:
    """With the step that finds what columns are, where they go by name."""
    if not study.by_name:
        return inner
    from tacit.federated.protocols.prepared import Prepared

    return Prepared(inner)


def _inner(study: Study) -> Protocol:
    if study.masked:
        from tacit.federated.protocols.marginals.masked import MaskedProtocol

        return MaskedProtocol(study)
    if isinstance(study.protocol, Marginals):
        from tacit.federated.protocols.marginals import MarginalsProtocol

        return MarginalsProtocol(study)
    from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol

    return FeatureSharingProtocol(study)
