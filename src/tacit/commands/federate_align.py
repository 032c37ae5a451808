"""`tacit federate align`: the people whom all parties have, found before a study begins."""

from argparse import Namespace
from contextlib import closing

from tacit.commands import say, tables
from tacit.commands.federate import (
    DISCLOSURES,
    check_certificate,
    private_key_of,
    public_keys_of,
    secret_of,
    state_folder,
)
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.matching import Matcher, match
from tacit.federated.pairs import PairMatcher, check_pair, match_pair
from tacit.federated.proposal import Proposal
from tacit.federated.transports import Transport
from tacit.federated.transports.flower import keys
from tacit.federated.transports.flower.engine import require_engine
from tacit.federated.transports.flower.network import Network

_COORDINATOR = b"coordinator"  # it has no ids


def run(arguments: Namespace) -> int:
    """Play the coordinator's part, or a party's."""
    proposal, network = Proposal.from_toml(arguments.config), Network.from_toml(arguments.config)
    require_engine()
    if arguments.psi:
        check_pair(proposal)
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
            n_rows = _found(proposal, transport, store, arguments.psi)
            store.agree(proposal.digest, n_rows)
            transport.farewell()
    print(f"{n_rows:,} people are at all parties; `tacit federate coordinator` can begin.")
    return 0


def _found(proposal: Proposal, transport: Transport, store: DisclosureStore, psi: bool) -> int:
    """How many people match; another run of the same alignment must come to the same."""

    def told(number: int, step: str) -> None:
        say(f"round {number}: {step}")

    def fix(found: bytes) -> None:
        store.bind(proposal.digest, _COORDINATOR, found)

    if not psi:
        return match(proposal, transport, told, fix)
    n_rows = match_pair(proposal, transport, told)
    fix(str(n_rows).encode())
    return n_rows


def _party(arguments: Namespace, proposal: Proposal, network: Network) -> int:
    """Send what hides the ids of a table that stays here, and check who is common."""
    name = proposal.model.member(arguments.name).name
    missing = [option for option in ("data", "id") if getattr(arguments, option) is None]
    secret = secret_of(arguments)
    if missing or secret is None:
        missing += ["secret"] * (secret is None)
        raise ValueError(f"a party needs --{', --'.join(missing)}: people are matched by hidden forms of their ids")
    private_key = private_key_of(arguments, network)
    if arguments.peer is not None:
        own = keys.own_fingerprint(private_key)
        say(f"the other party is known by {keys.fingerprint(arguments.peer)}, and must know this one by {own}:")
        say("whoever gave one of them another key can read what only the two should; compare them by telephone")
    ids = tables.read_column(arguments.data, arguments.id, arguments.separator)
    say(f"{len(ids):,} ids; the other parties get to know who of them is at all parties, and the coordinator how many")
    state = state_folder(arguments, "parties", name)
    alignment = Alignment.of(ids, secret)
    kind = PairMatcher if arguments.psi else Matcher
    from tacit.federated.transports.flower.node import serve

    with closing(kind(proposal, name, alignment, state / DISCLOSURES)) as matcher:
        serve(matcher, network, private_key, state / "engine", say)
        print(f"{len(matcher.common.order):,} people are at all parties; `tacit federate party` can begin.")
    return 0
