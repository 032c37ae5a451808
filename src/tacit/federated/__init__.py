"""Learning between organisations that hold different columns of the same people.

    study            what was agreed, and its digest
    members          a party of a study, as the others know it
    declared         what a study says of a party's columns, by name
    units            what these columns are brought to, declared or found
    party            a party's data
    responder        takes messages apart, and refuses
    node             answers for a party
    coordinator      asks, and solves
    options          protocols and sketches, as objects with parameters
    evaluation       which people are held out, and what is said of models on them
    protocols        what is asked and answered: marginals, feature-sharing
    messages         bytes on the wire
    foreign          text of others, made safe to show
    journal          what survives a crash
    cap              what all studies of a party may give away together
    returned         the model as it comes back to the parties
    scoring          margins for one recipient, over the network
    sent             every message that a party sent, decoded
    store            where journals are kept: SQLite, in a file or in memory
    alignment        rows matched by keyed hashes of ids
    proposal         a study before it is known how many people it is about
    matching         which people all parties have
    disclosures      what was told exactly, and which people a study is about
    transports       in one process, or between organisations
    estimators       the scikit-learn face of a study in one process
    wording          what docstrings of estimators share
    paths            models of other radii, from the same moments
    models           the fitted estimator of a study that is done
    sketches         public random matrices that compress columns

Everything that crosses the network is a planned release; one guarantee covers it all.
"""

from tacit.federated.cap import Cap
from tacit.federated.coordinator import Coordinator, Outcome
from tacit.federated.estimators import FederatedLasso, FederatedLinearSVC, FederatedLogisticRegression
from tacit.federated.evaluation import Evaluation, HeldOut
from tacit.federated.members import Member
from tacit.federated.models import fitted_model
from tacit.federated.node import Node
from tacit.federated.options import FeatureSharing, Marginals, Sketching
from tacit.federated.party import Party
from tacit.federated.protocols.base import RefusedError
from tacit.federated.study import Study

__all__ = [
    "Cap",
    "Coordinator",
    "Evaluation",
    "FeatureSharing",
    "FederatedLasso",
    "FederatedLinearSVC",
    "FederatedLogisticRegression",
    "HeldOut",
    "Marginals",
    "Member",
    "Node",
    "Outcome",
    "Party",
    "RefusedError",
    "Sketching",
    "Study",
    "fitted_model",
]
