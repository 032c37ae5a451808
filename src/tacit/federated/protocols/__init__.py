"""The protocols, and what follows from a study alone: its protocol, its plan, each party's part of that plan."""

from dataclasses import replace

from tacit.federated.options import Marginals
from tacit.federated.protocols.base import Protocol
from tacit.federated.study import Study
from tacit.privacy import CalibratedPlan, Plan


def protocol_for(study: Study) -> Protocol:
    """The protocol that the study agreed on; what it does not serve raises here, before any data is read."""
    if isinstance(study.protocol, Marginals):
        from tacit.federated.protocols.marginals import MarginalsProtocol

        return MarginalsProtocol(study)
    from tacit.federated.protocols.feature_sharing import FeatureSharingProtocol

    return FeatureSharingProtocol(study)


def part_of(plan: CalibratedPlan, party: str) -> CalibratedPlan:
    """A party's own releases, under their names without its prefix, with the multipliers of the whole plan."""
    prefix = f"{party}/"
    own = [
        (replace(release, name=release.name.removeprefix(prefix)), multiplier)
        for release, multiplier in zip(plan.plan.releases, plan.multipliers, strict=True)
        if release.name.startswith(prefix)
    ]
    return CalibratedPlan(Plan(*(release for release, _ in own)), plan.budget, tuple(z for _, z in own))
