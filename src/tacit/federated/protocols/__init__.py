"""The protocols, and which of them a study agreed on."""

from tacit.federated.protocols.base import Protocol
from tacit.federated.study import Study


def protocol_for(study: Study) -> Protocol:
    """The protocol that the study agreed on; what it does not serve raises here, before any data is read."""
    if study.protocol == "marginals":
        from tacit.federated.protocols.marginals import Marginals

        return Marginals(study)
    from tacit.federated.protocols.feature_sharing import FeatureSharing

    return FeatureSharing(study)
