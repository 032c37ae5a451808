"""`tacit federate`: a study between organisations, each running its own command."""

from argparse import Namespace
from contextlib import closing, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from tacit.commands import say, tables
from tacit.commands.asked import fill as fill_word
from tacit.commands.schema import named, quoted, split
from tacit.federated import Cap, Coordinator, Node, Party, Study, fitted_model
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.matching import Matcher
from tacit.federated.proposal import Proposal, is_proposal
from tacit.federated.returned import Returned, farewells
from tacit.federated.store import BESIDE
from tacit.federated.transports.flower import keys
from tacit.federated.transports.flower.engine import require_engine
from tacit.federated.transports.flower.network import Network
from tacit.modelfiles import Column, load, save

PART = "part.json"  # of the model, in a state folder
DISCLOSURES = "disclosures.sqlite"  # in a state folder
_ANY_TEXT = ("",)  # categories that make a column be read as text, whatever it holds


def run(arguments: Namespace) -> int:
    """Play the part that was asked for."""
    if hasattr(arguments, "study"):
        if (arguments.config is None) == (arguments.study is None):
            raise ValueError(f"name the study file, once, as in: tacit federate {arguments.part} study.toml")
        arguments.config = arguments.config or arguments.study
    try:
        if arguments.part in ("align", "ledger", "cap", "score"):
            return import_module(f"tacit.commands.federate_{arguments.part}").run(arguments)
        return {"keys": _keys, "coordinator": _coordinator, "party": _party}[arguments.part](arguments)
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here")
        return 130


def _keys(arguments: Namespace) -> int:
    """Make the files that the network needs, for one of those who take part."""
    study, network = outline(arguments.config), Network.from_toml(arguments.config)
    everything = arguments.all
    if arguments.coordinator or everything:
        keys.make_certificate(network.host, network.authority, network.certificate, network.certificate_key)
        print(f"{network.authority} is for all parties; {network.certificate_key} never leaves the coordinator.")
    for name in study.names if everything else filter(None, [arguments.name]):
        study.member(name)
        keys.make_party_key(network.private_key(name), network.public_key(name))
        public = network.public_key(name)
        print(f"{public} is for the coordinator; {network.private_key(name)} never leaves {name}.")
        print(f"Its fingerprint is {keys.fingerprint(public)}.")
    if arguments.secret or everything:
        keys.make_secret(network.secret)
        print(f"{network.secret} is for all parties, and never for the coordinator.")
    return 0


def _coordinator(arguments: Namespace) -> int:
    """Wait for the parties, ask them, and write the model."""
    state = state_folder(arguments, "coordinator")
    study, network = agreed(arguments.config, state), Network.from_toml(arguments.config)
    require_engine()
    public_keys = public_keys_of(study, network)
    check_certificate(network)
    if not arguments.out.resolve().parent.is_dir() or arguments.out.is_dir():
        raise ValueError(f"{arguments.out} cannot be written: it is a folder, or its folder is not there")
    _warn(study)
    from tacit.federated.transports.flower.link import listening

    coordinator = Coordinator(study, state / "journal.sqlite", lambda number, step: say(f"round {number}: {step}"))
    try:
        with listening(network, public_keys, state / "engine", say) as transport:
            say(f"listening on {network.listen}; study {study.digest[:12]}")
            outcome = coordinator.run(transport)
            save(fitted_model(outcome, study), arguments.out)
            coordinator.farewell()
            transport.farewell(farewells(study, outcome.model, arguments.out.read_bytes()))
    finally:
        coordinator.close()
    print(f"Wrote {arguments.out}.")
    if "evaluation" in outcome.model.facts:
        print(outcome.model.facts["evaluation"])
    if outcome.left:
        print(f"Without {', '.join(outcome.left)}: not required, and not there in time.")
    print(
        f"{outcome.guarantee}; {outcome.n_rounds} rounds, {sum(outcome.uplink_bytes.values()):,} bytes from the parties"
    )
    return 0


def _party(arguments: Namespace) -> int:
    """Answer the coordinator from a table that stays here."""
    network, member = Network.from_toml(arguments.config), outline(arguments.config).member(arguments.name)
    require_engine()
    private_key = private_key_of(arguments, network)
    state = state_folder(arguments, "parties", member.name)
    study = agreed(arguments.config, state)
    secret = secret_of(arguments)
    if (arguments.id is None) != (secret is None) and not (study.masked and arguments.id is None):
        raise ValueError("--id and --secret come together, or --id and --peer: rows are matched by hashes of the ids")
    if study.masked and secret is None:
        raise ValueError("products are masked in this study, under what the parties share: give --secret or --peer")
    if member.labels != (arguments.label is not None):
        raise ValueError(
            f"by the study, {member.name!r} {'holds' if member.labels else 'does not hold'} the labels:"
            f" {'name their column with --label' if member.labels else 'leave out --label, and --drop the column'}"
        )
    _warn(study)  # before anything of the party's is read or written
    party = read_party(arguments, study)
    if study.membership == "agreed":
        party = _matched(party, arguments.config, state)
    path = arguments.cap or network.cap
    with nullcontext() if path is None else closing(Cap(path)) as cap:
        node = Node(study, party, state / "journal.sqlite", cap=cap, warn=False)
    from tacit.federated.transports.flower.node import serve

    try:
        serve(node, network, private_key, state / "engine", say)
        node.farewell()
        spent = [entry for entry in node.ledger() if entry.kind != BESIDE]
    finally:
        node.close()
    _keep(node.returned, state)
    print(f"The study is done; {member.name} made {sum(entry.count for entry in spent):,} releases for it.")
    return 0


def _keep(returned: Returned, state: Path) -> None:
    """Write what came back of the model; a model that cannot be read is not kept."""
    if returned.part is not None:
        (state / PART).write_text(returned.part.to_json(), encoding="utf8")
        print(f"Wrote {state / PART}: this party's part of the model, for `tacit federate score`.")
    if returned.model is not None:
        path = state / "model.json"
        path.write_bytes(returned.model)
        try:
            load(path)
        except ValueError:
            path.unlink()
            say("warning: the model that the coordinator sent cannot be read, and was not kept")
        else:
            print(f"Wrote {path}: the whole model.")


def read_party(arguments: Namespace, study: Study) -> Party:
    """A party's table as a party, with its labels, and its ids if there is a secret."""
    frame, features = read_table(arguments, study)
    columns = study.member(arguments.name).columns
    return Party(
        frame[features] if columns else frame[features].to_numpy(),
        None if arguments.label is None else frame[arguments.label].to_numpy(),
        name=arguments.name,
        ids=None if arguments.id is None else frame[arguments.id],
        secret=secret_of(arguments),
        columns=columns or None,
    )


def read_table(arguments: Namespace, study: Study) -> tuple[Any, list[str]]:
    """A party's table: numbers, and of the other columns the id and the label; and which columns are to learn from."""
    if study.by_name:
        return _read_declared(arguments, study)
    left_out = split(arguments.drop or "")
    fill = {name: fill_word(name, None, word) for name, word in (named("--fill", text) for text in arguments.fill)}
    present = tables.header(arguments.data, arguments.separator)
    special = [name for name in (arguments.id, arguments.label) if name is not None]
    features = [name for name in present if name not in {*special, *left_out}]
    unknown = sorted({*special, *left_out} - set(present) | set(fill) - set(features))
    if unknown:
        raise ValueError(f"{arguments.data} has no such column to learn from, match by or leave out: {quoted(unknown)}")
    if not features:
        raise ValueError("no column is left to learn from")
    columns = [Column(name, None, fill.get(name)) for name in features] + _special(arguments, study)
    frame = tables.read_features(arguments.data, columns, arguments.separator)
    missing = _with_holes(frame, [column.name for column in columns if column.fill is None])
    if missing:
        raise ValueError(
            f"missing values in {quoted(missing)}: give a public constant for each, as in --fill {missing[0]}=0"
        )
    say(f"{len(frame):,} rows; the columns of {arguments.name} are {', '.join(features)}, in this order")
    frame[features] = frame[features].fillna(fill)
    return frame, features


def _read_declared(arguments: Namespace, study: Study) -> tuple[Any, list[str]]:
    """The same of the columns that the study names; others are not read, and holes stay."""
    if arguments.drop or arguments.fill:
        raise ValueError("the study names the columns and what they are: leave out --drop and --fill")
    declared = study.member(arguments.name).columns
    names, special = [column.name for column in declared], _special(arguments, study)
    if shared := sorted(set(names) & {column.name for column in special}):
        raise ValueError(f"by the study, the model learns from {quoted(shared)}, which is the id or the label")
    columns = [Column(column.name, _ANY_TEXT if column.is_text else None) for column in declared]
    frame = tables.read_features(arguments.data, columns + special, arguments.separator)
    if missing := _with_holes(frame, [column.name for column in special]):
        raise ValueError(f"missing values in {quoted(missing)}: leave those rows out before")
    say(f"{len(frame):,} rows; the columns of {arguments.name} are {', '.join(names)}, by the study")
    return frame, names


def _special(arguments: Namespace, study: Study) -> list[Column]:
    """How the id and the label are read."""
    classes = study.classes if study.classes and isinstance(study.classes[0], str) else None
    found = [Column(arguments.id, _ANY_TEXT)] if arguments.id is not None else []
    return found + ([Column(arguments.label, classes)] if getattr(arguments, "label", None) is not None else [])


def _with_holes(frame: Any, names: list[str]) -> list[str]:
    return [name for name in names if frame[name].isna().any()]


def public_keys_of(study: Study, network: Network) -> dict[bytes, str]:
    """The parties by their keys, which must all be there and be different."""
    missing = [str(network.public_key(name)) for name in study.names if not network.public_key(name).exists()]
    if missing:
        raise ValueError(f"public keys of parties are missing: {', '.join(missing)}; `tacit federate keys` makes them")
    found = {keys.read_public_key(network.public_key(name)): name for name in study.names}
    if len(found) < len(study.names):
        raise ValueError("two parties have the same public key; each makes its own")
    return found


def check_certificate(network: Network) -> None:
    """The parties check the host they were told, and this process the address it reaches the engine at."""
    for path in (network.authority, network.certificate, network.certificate_key):
        if not path.exists():
            raise ValueError(f"{path} is missing; `tacit federate keys --coordinator` makes it")
    lacking = sorted({network.host, network.own_host} - keys.certificate_hosts(network.certificate))
    if lacking:
        raise ValueError(f"{network.certificate} is not for {', '.join(lacking)}; it must name that in subjectAltName")


def state_folder(arguments: Namespace, *parts: str) -> Path:
    """The folder of what survives a crash."""
    folder = arguments.config.parent.joinpath("state", *parts) if arguments.state is None else arguments.state
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def private_key_of(arguments: Namespace, network: Network) -> Path:
    """The file of a party's private key, which must be one."""
    path = private_key_path(arguments, network)
    keys.read_private_key(path)
    return path


def secret_of(arguments: Namespace) -> bytes | None:
    """What the parties share: of a file, or of two parties what follows from their keys; None if neither is named."""
    if arguments.peer is None:
        return None if arguments.secret is None else arguments.secret.read_bytes().strip()
    if arguments.secret is not None:
        raise ValueError("give --secret or --peer, not both: parties that share a secret need no other")
    if len(outline(arguments.config).names) != 2:
        raise ValueError("--peer is for studies of two parties; more of them share a --secret")
    own = private_key_path(arguments, Network.from_toml(arguments.config))
    return keys.pair_secret(own, arguments.peer)


def private_key_path(arguments: Namespace, network: Network) -> Path:
    """Where a party's private key is."""
    return network.private_key(arguments.name) if arguments.key is None else arguments.key


def outline(config: Path) -> Study:
    """The study of a file; one that is to be aligned has not its true number of rows."""
    return Proposal.from_toml(config).model if is_proposal(config) else Study.from_toml(config)


def agreed(config: Path, state: Path) -> Study:
    """The study of a file, with the number of people whom all parties have if that had to be found."""
    if not is_proposal(config):
        return Study.from_toml(config)
    proposal = Proposal.from_toml(config)
    with closing(DisclosureStore(state / DISCLOSURES)) as store:
        bound = store.bound(proposal.digest)
    if bound is None or bound.n_rows is None:
        raise ValueError(f"it is not known yet whom all parties have: `tacit federate align {config}` finds that")
    return proposal.study(bound.n_rows)


def _matched(party: Party, config: Path, state: Path) -> Party:
    """The party with the rows of the people whom all parties have."""
    if party.alignment is None:
        raise ValueError("people are matched by ids: --id and --secret are needed, or --peer")
    with closing(Matcher(Proposal.from_toml(config), str(party.name), party.alignment, state / DISCLOSURES)) as matcher:
        return party.common(matcher.common)


def _warn(study: Study) -> None:
    """Say what is wrong with the study, before anybody takes part in it."""
    for caution in study.cautions:
        say(f"warning: {caution}")
