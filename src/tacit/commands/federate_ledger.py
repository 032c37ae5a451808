"""`tacit federate ledger`: every message that a party sent, as a table and as a page."""

from argparse import Namespace
from contextlib import closing
from pathlib import Path

from tacit.commands import say
from tacit.commands.federate import DISCLOSURES
from tacit.federated import Cap
from tacit.federated.foreign import shown
from tacit.federated.sent import Sent, disclosed, sent_messages
from tacit.report.page import escaped, page, section, table

_HEAD = ("study", "party", "round", "what", "bytes or people", "noise over sensitivity", "mu^2", "of the cap")
_RESERVED = ("study", "party", "reserved at", "epsilon", "delta", "mu^2", "of the cap", "journal")


def run(arguments: Namespace) -> int:
    """Read the journals, print, and write the page."""
    if arguments.cap is None and not arguments.journal:
        raise ValueError("name the party's --cap, or a --journal")
    journals, mu2, summary = list(arguments.journal), None, "No cap was named."
    reserved: list[tuple[str, ...]] = []
    if arguments.cap is not None:
        with closing(Cap(arguments.cap)) as cap:
            mu2 = cap.mu2
            summary = (
                f"Cap on {cap.people}: epsilon {cap.budget.epsilon:g}, delta {cap.budget.delta:g};"
                f" {cap.left:.1%} of its mu^2 ({mu2:.6g}) is left."
            )
            for entry in cap.reserved():
                numbers = f"{entry.epsilon:g}", f"{entry.delta:g}", f"{entry.mu2:.6g}", f"{entry.mu2 / mu2:.2%}"
                reserved.append((entry.name, entry.party, entry.at, *numbers, entry.journal or "in memory"))
                if entry.journal and Path(entry.journal) not in journals:
                    journals.append(Path(entry.journal))
    rows = [_row(line, mu2) for journal in journals for line in _lines(journal)]
    for head, body in ((_RESERVED, reserved), (_HEAD, rows)):
        if body:
            _print(head, body)
    print(summary)
    if arguments.html is not None:
        arguments.html.write_text(_page(summary, reserved, rows), encoding="utf8")
    return 0


def _lines(journal: Path) -> list[Sent]:
    try:
        lines = sent_messages(journal)
    except ValueError as error:
        say(f"warning: {error}")
        return []
    party = lines[0].party if lines else journal.parent.name
    return lines + disclosed(journal.parent / DISCLOSURES, party)


def _row(line: Sent, mu2: float | None) -> tuple[str, ...]:
    told = [shown(text) for text in (line.study, line.party, line.round, line.what)]
    share = "" if mu2 is None else f"{line.mu2 / mu2:.2%}"
    return (*told, f"{line.size:,}", line.noise, f"{line.mu2:.6g}", share)


def _print(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    print(" | ".join(head))
    for row in rows:
        print(" | ".join(row))
    print()


def _page(summary: str, reserved: list[tuple[str, ...]], rows: list[tuple[str, ...]]) -> str:
    def cells(lines: list[tuple[str, ...]]) -> list[list[str]]:
        return [[escaped(cell) for cell in line] for line in lines]

    body = f"<h1>What was sent</h1><p>{escaped(summary)}</p>"
    body += section("reserved", "Studies", table(_RESERVED, cells(reserved), "What each study has reserved"))
    body += section("sent", "Messages", table(_HEAD, cells(rows), "Every message, with its releases"))
    return page("What a party sent", body)
