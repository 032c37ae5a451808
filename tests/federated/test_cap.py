"""A cap over all studies of a party: what studies cost, who is refused, and that nothing is taken twice."""

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

from tacit.federated import Cap, Marginals, Member, Node
from tacit.federated.cap import price_of, release_price
from tacit.federated.protocols import protocol_for
from tacit.federated.sent import sent_messages
from tacit.privacy import accounting, gdp
from tests.commands.support import tacit
from tests.federated.conftest import Sums, a_study, run, some_parties

PEOPLE = "patients of 2026"


@pytest.fixture
def path(tmp_path):
    """A cap that a study of epsilon 1 takes a fifth of, or so."""
    Cap.create(tmp_path / "cap.sqlite", 2.0, 1e-2, PEOPLE).close()
    return tmp_path / "cap.sqlite"


def test_gaussian_studies_cost_their_mu():
    promise = Sums(a_study()).promise
    exact = accounting.mu_of(promise.event) ** 2
    assert exact <= price_of(promise).mu2 <= exact * (1 + 1e-9)
    assert price_of(promise).d0 == 0.0


@pytest.mark.parametrize("parties", [2, 3])
def test_products_of_two_parties_are_charged_once(parties):
    """Both add noise to them; the price is that of the study's own guarantee."""
    members = tuple(Member(f"p{number}", 2, number == 0) for number in range(parties))
    masked = {"members": members, "labels": "held", "protocol": Marginals(products="masked")}
    study = a_study(name="real", n_rows=1000, entry_bound=1.0, y_bounds=(-1, 1), **masked)
    price = price_of(protocol_for(study).promise)
    assert price.mu2 == pytest.approx(study.budget.mu**2, rel=1e-4)


@pytest.mark.parametrize("e0", [0.01, 0.3, 1.0, 4.0])
def test_selections_are_dominated_by_what_they_cost(e0):
    """Against every two-point pair whose log-ratios have the range e0, in both directions, at many epsilons."""
    mu = math.sqrt(release_price("exponential", 1, 1.0 / e0))
    largest = 0.0
    for t in np.linspace(0.01, 0.99, 99) * e0:
        q = -math.expm1(t - e0) / (math.exp(t) - math.exp(t - e0))
        for p, r in ((np.array([math.exp(t) * q, math.exp(t - e0) * (1 - q)]), np.array([q, 1 - q])),):
            for one, other in ((p, r), (r, p)):
                for epsilon in np.linspace(0, e0, 41):
                    delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
                    bound = gdp.delta_from_mu(mu, float(epsilon))
                    assert delta <= bound + 1e-12
                    if epsilon == 0:
                        largest = max(largest, delta / bound)
    assert largest > 0.99  # it is the smallest such mu


@pytest.mark.parametrize("e0", [1e-9, 1e-7, 1e-5, 1e-3])
def test_prices_of_small_selections_are_rounded_up(e0):
    """By the series of erf^-1 and tanh: mu = sqrt(pi / 8) e0 (1 + (pi / 12 - 1 / 3) (e0 / 4)^2 ...), a little less."""
    first = math.pi / 8.0 * e0 * e0
    assert first * (1.0 - e0 * e0) <= release_price("exponential", 1, 1.0 / e0) <= first * (1.0 + 3e-12)
    if e0 < 1e-6:
        assert release_price("exponential", 1, 1.0 / e0) >= first


@pytest.mark.parametrize(("kind", "sampling"), [("objective", 1.0), ("gaussian", 0.5)])
def test_what_has_no_exact_price_is_refused(kind, sampling):
    with pytest.raises(ValueError, match="have no price under a cap"):
        release_price(kind, 1, 2.0, sampling)


@pytest.mark.usefixtures("toy")
def test_a_study_above_the_cap_is_refused_before_the_greeting(path, tmp_path):
    party = some_parties()[0]
    cap, taken = Cap(path), price_of(Sums(a_study()).promise).mu2
    for number in range(100):
        study = a_study(name=f"study {number}")
        if cap.left < taken / cap.mu2:
            break
        Node(study, party, tmp_path / f"{number}.sqlite", cap=cap).close()
    with pytest.raises(ValueError, match="is left: the party does not take part"):
        Node(study, party, tmp_path / f"{number}.sqlite", cap=cap)
    assert number == math.floor(cap.mu2 / taken)
    assert number > 2
    assert not (tmp_path / f"{number}.sqlite").exists()
    assert cap.left == pytest.approx(1 - number * taken / cap.mu2)
    Node(a_study(name="study 0"), party, tmp_path / "0.sqlite", cap=cap).close()  # goes on, and costs nothing more
    assert len(cap.reserved()) == number
    smaller = math.sqrt(number) * math.sqrt(taken)
    assert gdp.delta_from_mu(smaller, 2.0) <= 1e-2


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("kept", ["journal.sqlite", None])
def test_a_study_whose_journal_is_lost_is_not_answered_again(kept, path, tmp_path):
    """It would be released twice, with other noise, for one price."""
    party, cap = some_parties()[0], Cap(path)
    journal = kept and tmp_path / kept
    Node(a_study(), party, journal, cap=cap).close()
    if journal is not None:
        Node(a_study(), party, journal.rename(tmp_path / "moved"), cap=cap).close()  # it may be moved
    Node(a_study(name="another"), party, tmp_path / "other", cap=cap).close()
    for other in (journal, tmp_path / "other", None):
        with pytest.raises(ValueError, match="the study would be answered twice"):
            Node(a_study(), party, other, cap=cap)
    assert len(cap.reserved()) == 2


@pytest.mark.usefixtures("toy")
def test_a_reservation_is_for_one_journal(path, tmp_path):
    """Also before it is begun, when another process may be about to; whoever died there goes on."""
    party, cap = some_parties()[0], Cap(path)
    cap.reserve(a_study(), Sums(a_study()).promise, "a", tmp_path / "one")
    with pytest.raises(ValueError, match="the study would be answered twice"):
        Node(a_study(), party, tmp_path / "two", cap=cap)
    Node(a_study(), party, tmp_path / "one", cap=cap).close()
    assert [entry.begun for entry in cap.reserved()] == [1]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"random_state": 1}, "a seeded study is not admitted"),
        ({"epsilon": math.inf}, "gives away everything"),
        ({"adjacency": "replace-one"}, "is about add-remove neighbours"),
    ],
)
def test_studies_that_a_cap_cannot_count(changes, match, path):
    cap = Cap(path)
    with pytest.raises(ValueError, match=match):
        Node(a_study(**changes), some_parties()[0], cap=cap, warn=False)
    assert cap.left == 1.0


def test_a_cap_is_made_once(path, tmp_path):
    with pytest.raises(FileExistsError, match="never overwritten"):
        Cap.create(path, 9.0, 1e-2, PEOPLE)
    with pytest.raises(ValueError, match="is not there"):
        Cap(tmp_path / "other")
    with pytest.raises(ValueError, match="finite"):
        Cap.create(tmp_path / "other", math.inf, 1e-2, PEOPLE)
    (tmp_path / "journal").touch(mode=0o600)
    (tmp_path / "journal").write_bytes(b"not a database at all" * 99)
    with pytest.raises(ValueError, match="is not the journal that is needed"):
        Cap(tmp_path / "journal")
    cap = Cap(path)
    assert cap._first("PRAGMA journal_mode") == ("wal",)
    assert cap._first("PRAGMA synchronous") == (2,)  # FULL
    assert gdp.delta_from_mu(math.sqrt(cap.mu2), 2.0) + cap.d0 <= 1e-2


_TAKE = """
import os, sys
from tacit.federated import Cap, Member, Study
from tacit.federated.protocols import protocol_for
path, name, end = sys.argv[1:]
members = (Member("a", 2, True),)
study = Study(name, "squared", members, 1000, 1.0, 1.4, 1e-2 / 11, entry_bound=1.0, y_bounds=(-1.0, 1.0))
cap = Cap(path)
sys.stdin.readline()
try:
    cap.reserve(study, protocol_for(study).promise, "a", None)
except ValueError:
    os._exit(3)
os._exit(int(end))
"""


def taking(path, name, end=0):
    command = [sys.executable, "-W", "ignore", "-c", _TAKE, str(path), name, str(end)]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def test_a_process_that_dies_after_it_reserved_has_spent_it(path):
    process = taking(path, "s", 9)
    process.communicate(b"\n")
    assert process.returncode == 9
    (entry,) = Cap(path).reserved()
    assert (entry.name, entry.party) == ("s", "a")
    assert Cap(path).left < 1.0


def test_threads_at_once_take_no_more_than_there_is(path):
    """Each with a connection of its own, as processes have."""
    together, taken = threading.Barrier(6), []

    def take(number):
        cap = Cap(path)
        study = a_study(name=f"s{number}")
        promise = Sums(study).promise
        together.wait()
        try:
            taken.append(cap.reserve(study, promise, "a", None))
        except ValueError:
            taken.append(None)
        finally:
            cap.close()

    threads = [threading.Thread(target=take, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cap = Cap(path)
    admitted = [price for price in taken if price is not None]
    assert len(taken) == 6
    assert 0 < len(admitted) == len(cap.reserved()) == math.floor(cap.mu2 / admitted[0].mu2) < 6


@pytest.mark.slow
def test_processes_at_once_take_no_more_than_there_is(path):
    waiting = [taking(path, f"s{number}") for number in range(4)]
    for process in waiting:
        process.stdin.write(b"\n")
        process.stdin.flush()
    codes = [process.wait() for process in waiting]
    for process in waiting:
        process.stdin.close()
    cap = Cap(path)
    assert set(codes) == {0, 3}
    assert codes.count(0) == len(cap.reserved()) == math.floor(cap.mu2 / cap.reserved()[0].mu2)


def test_the_ledger_shows_every_message(path, tmp_path, capsys):
    study = a_study(name="real", protocol=Marginals(cross="zero"), y_bounds=(-1, 1))
    cap = Cap(path)
    parties = some_parties()
    _, wire, _ = run(study, parties, tmp_path)
    Node(study, parties[0], tmp_path / "a", cap=cap).close()
    cap.close()
    lines = sent_messages(tmp_path / "a")
    told = [replies["a"] for replies in wire.replies if "a" in replies]
    assert [line.size for line in lines] == list(map(len, told))
    assert [line.mu2 > 0 for line in lines] == [False] + [True] * (len(told) - 1)
    assert sum(line.mu2 for line in lines) < price_of(protocol_for(study).promise).mu2
    code, out, _ = tacit(capsys, "federate", "ledger", "--cap", path, "--html", tmp_path / "page.html")
    assert code == 0
    for text in (PEOPLE, "greeting: shape 2", "moments", "% of its mu^2", str(tmp_path / "a")):
        assert text in out
    page = (tmp_path / "page.html").read_text()
    assert PEOPLE in page
    assert "moments" in page
    (tmp_path / "a").unlink()
    code, _, err = tacit(capsys, "federate", "ledger", "--cap", path)
    assert code == 0
    assert "counts as spent" in err


def test_a_cap_on_the_command_line(tmp_path, capsys):
    told = ["federate", "cap", tmp_path / "cap", "--epsilon", 3, "--delta", 1e-6, "--people", PEOPLE]
    code, out, _ = tacit(capsys, *told)
    assert (code, PEOPLE in out) == (0, True)
    code, _, err = tacit(capsys, *told)
    assert (code, "never overwritten" in err) == (2, True)
    code, _, err = tacit(capsys, "federate", "ledger")
    assert (code, "name the party's --cap" in err) == (2, True)
