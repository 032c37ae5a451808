"""`tacit federate align`: the people whom all parties have, found before a study begins."""

from argparse import Namespace
from contextlib import closing

from tacit.commands import say, tables
from tacit.commands.federate import DISCLOSURES, check_certificate, private_key_of, public_keys_of, state_folder
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.matching import Matcher, match
from tacit.federated.proposal import Proposal
from tacit.federated.transports.flower.engine import require_engine
from tacit.federated.transports.flower.network import Network

_COORDINATOR = b"coordinator"  # it has no ids


def run(arguments: Namespace) -> int:
    """Play the coordinator's part, or a party's."""
    proposal, network = Proposal.from_toml(arguments.config), Network.from_toml(arguments.config)
    require_engine()
    return (_coordinator if arguments.coordinator else _party)(arguments, proposal, network)


def _coordinator(arguments: Namespace, proposal: Proposal, network: Network) -> int:
    """Intersect what the parties send, and keep how many people match."""
    public_keys = public_keys_of(proposal.model, network)
    check_certificate(network)
    from tacit.federated.transports.flower.link import listening

    state = state_folder(arguments, "coordinator")
    with closing(DisclosureStore(state / DISCLOSURES)) as store:
        store.begin(proposal.digest, _COORDINATOR)
        with listening(network, public_keys, state / "engine", say) as transport:
            say(f"listening on {network.listen}; proposal {proposal.digest[:12]}")
            n_rows = match(
                proposal,
                transport,
                lambda number, step: say(f"round {number}: {step}"),
                lambda tags: store.bind(proposal.digest, _COORDINATOR, tags),
            )
            store.agree(proposal.digest, n_rows)
            transport.farewell()
    print(f"{n_rows:,} people are at all parties; `tacit federate coordinator` can begin.")
    return 0


def _party(arguments: Namespace, proposal: Proposal, network: Network) -> int:
    """Send tags of the ids of a table that stays here, and check who is common."""
    name = proposal.model.member(arguments.name).name
    missing = [option for option in ("data", "id", "secret") if getattr(arguments, option) is None]
    if missing:
        raise ValueError(f"a party needs --{', --'.join(missing)}: people are matched by keyed hashes of their ids")
    private_key = private_key_of(arguments, network)
    ids = tables.read_column(arguments.data, arguments.id, arguments.separator)
    say(f"{len(ids):,} ids; the other parties get to know who of them is at all parties, and the coordinator how many")
    state = state_folder(arguments, "parties", name)
    alignment = Alignment.of(ids, arguments.secret.read_bytes().strip())
    from tacit.federated.transports.flower.node import serve

    with closing(Matcher(proposal, name, alignment, state / DISCLOSURES)) as matcher:
        serve(matcher, network, private_key, state / "engine", say)
        print(f"{len(matcher.common.order):,} people are at all parties; `tacit federate party` can begin.")
    return 0
