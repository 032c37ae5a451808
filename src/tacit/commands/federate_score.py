"""`tacit federate score`: predictions for people of several parties, each adding its share. They are not private.

A party's share for a person is a function of that person's columns, without noise. So it goes to one named recipient,
by a way that the parties trust, and is kept as a disclosure. The recipient adds the shares of all parties and the
intercept.
"""

from argparse import Namespace
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit.commands import say, tables
from tacit.commands.federate import DISCLOSURES, PART, outline, read_table, state_folder
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.returned import Part
from tacit.federated.study import Study

_MARGIN, _PARTY, _STUDY = "margin", "party", "study"


def run(arguments: Namespace) -> int:
    """Write this party's margins for the recipient, or as the recipient the sums of all."""
    study = outline(arguments.config)
    name, recipient = study.member(arguments.name).name, study.member(arguments.to).name
    if (name == recipient) != bool(arguments.add) and len(study.names) > 1:
        raise ValueError("the recipient names what the others wrote with --add, and nobody else does")
    state = state_folder(arguments, "parties", name)
    part = _part(state / PART, name)
    asked = tables.read_column(arguments.ids, arguments.id, arguments.separator)
    rows = _rows(arguments, study, asked)
    margins = part.margins(rows if study.by_name else rows.to_numpy())
    frame = tables.pandas().DataFrame({arguments.id: asked.to_numpy(), _MARGIN: margins})
    if name == recipient:
        frame[_MARGIN] += part.intercept
        for other, values in _added(arguments, study, part, asked).items():
            frame[_MARGIN] += values
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


def _added(arguments: Namespace, study: Study, part: Part, asked: Any) -> dict[str, Any]:
    """The margins of all other parties, each for the same people."""
    found: dict[str, Any] = {}
    for path in arguments.add:
        ids = tables.read_column(path, arguments.id, arguments.separator).astype(str)
        margins = tables.read_column(path, _MARGIN, arguments.separator).astype(float)
        whose, of = (set(tables.read_column(path, what, arguments.separator)) for what in (_PARTY, _STUDY))
        if of != {part.study} or len(whose) != 1 or set(ids) != set(asked.astype(str)) or ids.duplicated().any():
            raise ValueError(f"{path} is of another study, or about other people than are asked about")
        found[whose.pop()] = margins.set_axis(ids).loc[asked.astype(str)].to_numpy()
    others = set(study.names) - {part.party}
    if set(found) != others or len(arguments.add) != len(others):
        raise ValueError(f"one file is needed of each other party: {', '.join(sorted(others))}")
    return found
