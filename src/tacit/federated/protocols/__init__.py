"""The protocols, and which of them a study agreed on."""

from tacit.federated.options import Marginals
from tacit.federated.protocols.base import Protocol
from tacit.federated.study import Study


def protocol_for(study: Study) -> Protocol:
    """The protocol that the study agreed on; what it does not serve raises here, before any data is read."""
    if not study.by_name:
        return _inner(study)
    from tacit.federated.protocols.prepared import Prepared

    return Prepared(_inner(study))


def _inner(study: Study) -> Protocol:
    if study.masked:
        from tacit.federated.protocols.marginals.masked import MaskedProtocol

        return MaskedProtocol(study)
    if isinstance(study.protocol, Marginals):
        from tacit.federated.protocols.marginals import MarginalsProtocol

        return MarginalsProtocol(study)
    from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol

    return FeatureSharingProtocol(study)
