"""`Cap`: what a party's studies on the same people may give away together, kept in one file of the party.

The currency is (mu^2, d0): a study whose releases are mu-GDP but for an event of probability d0 costs that. Such costs
add up whatever made the party take part in the next study, and whatever its coordinator asks. With (epsilon, delta) as
the cap, d0 may add up to delta / 10, and mu^2 to the square of the largest mu whose mu-GDP implies (epsilon, nine
tenths of delta).

What holds, and must never change:

- A study is reserved before it is joined, in one transaction that reads the sum, checks it and adds to it. Two
  processes cannot both take what is left.
- A reservation counts as spent from then on, whether the study ends, fails or is never begun, and is never given back.
- It is for one journal. A study that was begun, and is not in the journal any more, is refused: it would be answered a
  second time, with other noise, at no price.
- Prices are rounded up and their sums are exact: what is admitted meets the cap.
- The cap is fixed when the file is made. It says nothing of people in other files: one cap for one population.

A study is charged with the releases of all its parties. They are about the same people, and labels and products that
parties share are in the releases of others.
"""

import math
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from scipy.special import erfinv, expit, ndtri

from tacit.federated.store import PartyStore, Store
from tacit.federated.study import Study
from tacit.privacy import Budget, Promise, checks
from tacit.privacy.checks import Adjacency
from tacit.privacy.gdp import mu_from_budget
from tacit.privacy.plan import Kind

_D0_PART = 10  # of delta, for all d0 together
_ROUNDED_UP = 1.0 + 1e-12


class Price(NamedTuple):
    """What releases cost."""

    mu2: float
    d0: float = 0.0


class Reserved(NamedTuple):
    """A study that counts against a cap, and where the party keeps its journal."""

    digest: str
    name: str
    party: str
    epsilon: float
    delta: float
    mu2: float
    d0: float
    at: str
    journal: str
    begun: int = 0


def price_of(promise: Promise) -> Price:
    """What all releases of a promise cost, rounded up; in the view that sees most.

    So products between two parties, which both add noise to, count once, and of releases about different people those
    count that cost more.
    """
    pairs = zip(promise.plan.releases, promise.multipliers, strict=True)
    each = [release_price(r.kind, r.count, multiplier, r.sampling) for r, multiplier in pairs]
    views = promise.plan.views or ((1.0,) * len(each),)
    mu2 = max(math.fsum(part * price for part, price in zip(view, each, strict=True) if part) for view in views)
    return Price(mu2 * _ROUNDED_UP, promise.plan.d0(promise.budget.delta) * _ROUNDED_UP)


def release_price(kind: Kind, count: int, multiplier: float, sampling: float = 1.0) -> float:
    """The mu^2 of `count` releases of one kind at this multiplier; kinds without an exact one are refused."""
    if multiplier == 0.0:
        return math.inf
    if kind in ("gaussian", "thresholded") and sampling == 1.0:
        one = 1.0 / multiplier**2
    elif kind == "exponential":  # its log-weights move by a range of 1 / multiplier
        one = (2.0 * _quantile(0.5 / multiplier)) ** 2
    elif kind == "laplace":  # pure epsilon of 1 / multiplier
        one = (2.0 * _quantile(1.0 / multiplier)) ** 2
    else:
        raise ValueError(f"releases of kind {kind!r}, or of samples, have no price under a cap")
    return count * one * _ROUNDED_UP


def _quantile(x: float) -> float:
    """Phi^-1(e^x / (1 + e^x)), for x above 0; by erf where that is next to 1/2, which has no digits for it."""
    return math.sqrt(2.0) * float(erfinv(math.tanh(x / 2.0))) if x < 1.0 else -float(ndtri(expit(-x)))


class Cap(Store):
    """The file of a cap; `Cap.create` makes it.

    Parameters
    ----------
    path : path
        Of a file that is there.

    Attributes
    ----------
    budget : Budget
        The (epsilon, delta) that all studies together meet.
    people : str
        Whom it is about, in the party's own words.
    mu2, d0 : float
        The same in the currency of prices.
    """

    _owner = "a party"
    _tables = """
CREATE TABLE cap (epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL, people TEXT NOT NULL);
CREATE TABLE reserved (
    digest TEXT PRIMARY KEY, name TEXT NOT NULL, party TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    mu2 REAL NOT NULL, d0 REAL NOT NULL, at TEXT NOT NULL, journal TEXT NOT NULL,
    begun INTEGER NOT NULL);
"""
    _mark = 0x54616334
    _synchronous = "FULL"  # with a write-ahead log that is enough for a power cut

    def __init__(self, path: Path | str) -> None:
        if not Path(path).is_file():
            raise ValueError(f"{path} is not there; `tacit federate cap` makes it, once")
        super().__init__(path)
        row = self._first("SELECT * FROM cap")
        if row is None:
            raise ValueError(f"{path} holds no cap: whoever made it was interrupted. Delete it, and make it again")
        epsilon, delta, adjacency, self.people = row
        self.budget = Budget(epsilon, delta, adjacency)
        self.d0 = delta / _D0_PART
        self.mu2 = mu_from_budget(epsilon, delta - self.d0) ** 2 / _ROUNDED_UP

    @classmethod
    def create(
        cls, path: Path | str, epsilon: float, delta: float, people: str, adjacency: Adjacency = "add-remove"
    ) -> "Cap":
        """Make the file; one that is there is left as it is."""
        budget = Budget(epsilon, delta, adjacency)
        if not budget.is_private:
            raise ValueError("a cap needs an epsilon that is finite")
        checks.printable("people", people)
        if Path(path).exists():
            raise FileExistsError(f"already there, and never overwritten: {path}")
        new = _Unset(path)
        new.set(budget, people)
        new.close()
        return cls(path)

    def reserve(self, study: Study, promise: Promise, party: str, journal: Path | str | None) -> Price:
        """Count a study as spent, unless it was before; one that does not fit, or whose journal is lost, is refused."""
        price = self._priced(study, promise)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        where = "" if journal is None else str(Path(journal).absolute())
        with self.transaction():
            entries = self.reserved()
            known = [entry for entry in entries if entry.digest == study.digest]
            if known:
                _check_journal(known[0], where)
                return Price(known[0].mu2, known[0].d0)
            left = self._left(entries)
            if Fraction(price.mu2) > left[0] or Fraction(price.d0) > left[1]:
                part = float(max(left[0], Fraction(0)) / Fraction(self.mu2))
                raise ValueError(
                    f"study {study.name!r} takes {price.mu2 / self.mu2:.1%} of the cap on {self.people}, and"
                    f" {part:.1%} is left: the party does not take part. Nothing was sent"
                )
            row = Reserved(study.digest, study.name, party, study.epsilon, promise.budget.delta, *price, now, where)
            self._database.execute("INSERT INTO reserved VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return price

    def begin(self, study: Study) -> None:
        """The study is in the party's journal: from now on answers may leave, and without that journal none do."""
        with self.transaction():
            self._database.execute("UPDATE reserved SET begun = 1 WHERE digest = ?", [study.digest])

    def reserved(self) -> list[Reserved]:
        """All studies that count, the oldest first."""
        return [Reserved(*row) for row in self._database.execute("SELECT * FROM reserved ORDER BY rowid")]

    @property
    def left(self) -> float:
        """The part of the cap's mu^2 that no study has reserved."""
        return float(self._left(self.reserved())[0] / Fraction(self.mu2))

    def _left(self, entries: Iterable[Reserved]) -> tuple[Fraction, Fraction]:
        """What is left of mu^2 and of d0, exactly."""
        spent = [(Fraction(entry.mu2), Fraction(entry.d0)) for entry in entries]
        return Fraction(self.mu2) - sum(mu2 for mu2, _ in spent), Fraction(self.d0) - sum(d0 for _, d0 in spent)

    def _priced(self, study: Study, promise: Promise) -> Price:
        """The price of a study that a cap can count; others are refused."""
        if not study.budget.is_private:
            raise ValueError("a study with an infinite epsilon gives away everything: no cap admits it")
        if study.random_state is not None:
            raise ValueError("a seeded study is not admitted under a cap: two with one seed have the same noise")
        if study.adjacency != self.budget.adjacency:
            raise ValueError(f"the cap is about {self.budget.adjacency} neighbours, and the study {study.adjacency}")
        return price_of(promise)


def _check_journal(entry: Reserved, journal: str) -> None:
    """Refuse a study whose answers are in another journal than this one; a journal may be moved."""
    if not entry.begun:  # nothing can have left
        lost = journal != entry.journal
    elif not journal or not Path(journal).is_file():
        lost = True
    else:
        with closing(PartyStore(journal)) as store:
            lost = store.enrolled(entry.digest) is None
    if lost:
        raise ValueError(
            f"study {entry.name!r} was begun with the journal {entry.journal or 'in memory'}, and this is another one:"
            " the study would be answered twice. Put that journal back, or agree on a new study. Nothing was sent"
        )


class _Unset(Cap):
    """A file in which no cap stands yet."""

    def __init__(self, path: Path | str) -> None:
        Store.__init__(self, path)
        self._database.execute("PRAGMA journal_mode = WAL")  # the file stays so

    def set(self, budget: Budget, people: str) -> None:
        with self.transaction():
            row = [budget.epsilon, budget.delta, budget.adjacency, people]
            self._database.execute("INSERT INTO cap VALUES (?, ?, ?, ?)", row)
