"""Every message that a party ever sent, decoded from its journal: what the privacy officer reads."""

from pathlib import Path
from typing import NamedTuple

from tacit.federated import messages
from tacit.federated.cap import release_price
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.messages import Reply
from tacit.federated.store import BESIDE, Entry, PartyStore


class Sent(NamedTuple):
    """A message, or a disclosure, in words; `mu2` is what its releases cost."""

    study: str
    party: str
    round: str
    what: str
    size: int
    noise: str
    mu2: float


def sent_messages(journal: Path) -> list[Sent]:
    """What a journal says was sent, in the order of its studies and rounds."""
    if not journal.is_file():
        raise ValueError(f"{journal} is not there: what it held cannot be shown, and counts as spent")
    store = PartyStore(journal)
    try:
        return [line for study, name, party in store.studies() for line in _of_study(store, study, name, party)]
    finally:
        store.close()


def _of_study(store: PartyStore, study: str, name: str, party: str) -> list[Sent]:
    ledger = store.ledger(study)
    lines = []
    for number, reply in store.replies(study):
        message = messages.read(reply)
        arrays = message.arrays if isinstance(message, Reply) else {}
        made = [entry for entry in ledger if entry.round == number]
        what = ", ".join(f"{array} {'x'.join(map(str, values.shape))}" for array, values in arrays.items())
        noise = ", ".join(_told(entry) for entry in made)
        price = sum(release_price(entry.kind, entry.count, entry.multiplier) for entry in made if entry.kind != BESIDE)
        told = f"greeting: {what}" if number == 0 else what
        lines.append(Sent(name, party, str(number), told, len(reply), noise or "none: nothing of the data", price))
    return lines


def _told(entry: Entry) -> str:
    if entry.kind == BESIDE:
        return f"{entry.release}: no noise, a key or under a mask"
    return f"{entry.release}: {entry.count} {entry.kind} at {entry.multiplier:.3g}"


def disclosed(path: Path, party: str) -> list[Sent]:
    """What a party told exactly; studies that were aligned go by their digests."""
    if not path.is_file():
        return []
    store = DisclosureStore(path)
    try:
        return [
            Sent(entry.study[:12], party, entry.at, f"disclosed: {entry.what}", entry.size, "none: exact", 0.0)
            for entry in store.disclosures()
        ]
    finally:
        store.close()
