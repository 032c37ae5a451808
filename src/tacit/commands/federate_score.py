"""`tacit federate score`: predictions for people of several parties, each adding its share. They are not private.

A party's share for a person is a function of that person's columns, without noise. So it goes to one named recipient,
in a file by a way that the parties trust, or over the network in a box that the coordinator cannot open; and it is kept
as a disclosure. The recipient adds the shares of all parties and the intercept.
"""

from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tacit.commands import say, tables
from tacit.commands.federate import (
    DISCLOSURES,
    PART,
    agreed,
    check_certificate,
    outline,
    private_key_of,
    public_keys_of,
    read_table,
    secret_of,
    state_folder,
)
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.returned import Part
from tacit.federated.scoring import Scorer, score
from tacit.federated.study import Study
from tacit.federated.transports.flower.engine import require_engine
from tacit.federated.transports.flower.network import Network

_MARGIN, _PARTY, _STUDY = "margin", "party", "study"


def run(arguments: Namespace) -> int:
    """Carry boxes as the coordinator, or take part in that, or write margins to a file, or add those of files up."""
    study = outline(arguments.config)
    if arguments.to is None:
        raise ValueError("name who gets the margins, with --to")
    recipient = study.member(arguments.to).name
    if arguments.coordinator:
        return _coordinator(arguments, recipient)
    missing = [option for option in ("name", "data", "id", "ids") if getattr(arguments, option) is None]
    if missing:
        raise ValueError(f"a party needs --{', --'.join(missing)}")
    name = study.member(arguments.name).name
    if arguments.out is None and not (arguments.network and name != recipient):
        raise ValueError("name the file to write, with --out")
    state = state_folder(arguments, "parties", name)
    part = _part(state / PART, name)
    asked = tables.read_column(arguments.ids, arguments.id, arguments.separator)
    rows = _rows(arguments, study, asked)
    margins = part.margins(rows if study.by_name else rows.to_numpy()).reshape(len(asked), -1)
    if part.outputs != study.outputs:
        raise ValueError(f"{state / PART} is not of a model with the study's classes")
    if part.outputs > 1 and name != recipient:
        say(f"each person has {part.outputs} margins here: as many exact functions of {name}'s columns")
    names = _margin_columns(study)
    frame = tables.pandas().DataFrame({arguments.id: asked.to_numpy(), **dict(zip(names, margins.T, strict=True))})
    parties = part.parties or study.names
    if recipient not in parties:
        raise ValueError(f"{recipient!r} left the study: it has no part of the model, and cannot be sent margins")
    if arguments.network:
        return _over_network(arguments, frame, names, part, parties, state)
    if (name == recipient) != bool(arguments.add) and len(parties) > 1:
        raise ValueError("the recipient names what the others wrote with --add, and nobody else does")
    if name == recipient:
        frame[names] += np.array(part.intercept, ndmin=1)
        for other, values in _added(arguments, names, parties, part, asked).items():
            frame[names] += values
            say(f"added the share of {other}")
    else:
        frame = frame.assign(**{_PARTY: name, _STUDY: part.study})
        with closing(DisclosureStore(state / DISCLOSURES)) as store:
            told = f"margins of people who were asked about, to {recipient}"
            store.disclose(part.study, told, len(frame), _fingerprint(frame))
        say(f"these margins are not private: they are for {recipient} alone")
    tables.write(frame, arguments.out)
    print(f"Wrote {arguments.out}: {len(frame):,} {'predictions' if name == recipient else 'margins'}.")
    return 0


def _coordinator(arguments: Namespace, recipient: str) -> int:
    """Carry boxes from the parties to the recipient."""
    study, network = (
        agreed(arguments.config, state_folder(arguments, "coordinator")),
        Network.from_toml(arguments.config),
    )
    require_engine()
    parties = [name for name in study.names if name not in arguments.without]
    public_keys = public_keys_of(study, network)
    check_certificate(network)
    from tacit.federated.transports.flower.link import listening

    with listening(network, public_keys, state_folder(arguments, "coordinator") / "engine", say) as transport:
        say(f"listening on {network.listen}; scores for {recipient}, of study {study.digest[:12]}")
        count = score(study.digest, recipient, parties, transport, lambda k, step: say(f"round {k}: {step}"))
        transport.farewell()
    print(f"{recipient} has the margins of {count} other parties.")
    return 0


def _margin_columns(study: Study) -> list[str]:
    """What margins are called in a table: one for a row, or one for each of more than two classes."""
    return [_MARGIN] if study.outputs == 1 else [f"{_MARGIN} {label}" for label in study.classes or ()]


def _over_network(
    arguments: Namespace, frame: Any, names: list[str], part: Part, parties: Sequence[str], state: Path
) -> int:
    """Send this party's margins to the recipient, in a box; or as the recipient add up what comes."""
    secret = secret_of(arguments)
    if secret is None:
        raise ValueError("--network needs the parties' --secret: boxes are closed with it")
    if arguments.add:
        raise ValueError("over the network margins come by themselves: leave out --add")
    network = Network.from_toml(arguments.config)
    require_engine()
    private_key = private_key_of(arguments, network)
    people = Alignment.of(frame[arguments.id].astype(str), secret)
    name, recipient = part.party, arguments.to
    if name != recipient:
        say(f"margins of {len(frame):,} people are not private: they are for {recipient} alone")
    from tacit.federated.transports.flower.node import serve

    with closing(DisclosureStore(state / DISCLOSURES)) as store:
        margins = frame[names].to_numpy()[people.order]
        scorer = Scorer(part.study, name, recipient, parties, people, margins, store)
        serve(scorer, network, private_key, state / "engine", say)
    if name != recipient:
        print(f"{recipient} was sent {len(frame):,} margins.")
        return 0
    if scorer.unusable:
        raise ValueError(f"no margins of these people came from {', '.join(scorer.unusable)}, but something else")
    if scorer.total is None:
        raise ValueError("the coordinator ended before all margins were there: start both again")
    frame.loc[people.order, names] = scorer.total + np.array(part.intercept)
    tables.write(frame, arguments.out)
    print(f"Wrote {arguments.out}: {len(frame):,} predictions.")
    return 0


def _part(path: Path, name: str) -> Part:
    if not path.is_file():
        raise ValueError(f"{path} is not there: a party gets its part of the model when the study is done")
    part = Part.from_json(path.read_text(encoding="utf8"))
    if part.party != name:
        raise ValueError(f"{path} is the part of another party than {name!r}")
    return part


def _fingerprint(margins: Any) -> bytes:
    """Other people, or other margins of them, are another disclosure."""
    return sha256(margins.to_csv(index=False).encode()).digest()


def _rows(arguments: Namespace, study: Study, asked: Any) -> Any:
    """The rows of the people who are asked about, in that order; those who are not there are not named."""
    frame, features = read_table(arguments, study)
    if frame[arguments.id].duplicated().any() or asked.duplicated().any():
        raise ValueError("ids must be unique; some appear more than once")
    known = frame.set_index(frame[arguments.id].astype(str))[features]
    wanted = asked.astype(str)
    missing = int((~wanted.isin(known.index)).sum())
    if missing:
        raise ValueError(f"{missing:,} of the people who are asked about are not in {arguments.data}")
    return known.loc[wanted]


def _added(arguments: Namespace, names: list[str], parties: Sequence[str], part: Part, asked: Any) -> dict[str, Any]:
    """The margins of all other parties, each for the same people."""
    found: dict[str, Any] = {}
    for path in arguments.add:
        ids = tables.read_column(path, arguments.id, arguments.separator).astype(str)
        margins = [tables.read_column(path, name, arguments.separator).astype(float) for name in names]
        whose, of = (set(tables.read_column(path, what, arguments.separator)) for what in (_PARTY, _STUDY))
        if of != {part.study} or len(whose) != 1 or set(ids) != set(asked.astype(str)) or ids.duplicated().any():
            raise ValueError(f"{path} is of another study, or about other people than are asked about")
        wanted = asked.astype(str)
        found[whose.pop()] = tables.pandas().DataFrame(
            {name: column.set_axis(ids).loc[wanted].to_numpy() for name, column in zip(names, margins, strict=True)}
        )
    others = set(parties) - {part.party}
    if set(found) != others or len(arguments.add) != len(others):
        raise ValueError(f"one file is needed of each other party: {', '.join(sorted(others))}")
    return found
