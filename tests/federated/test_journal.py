"""A journal binds a round to a request, stores all of a round or nothing, and gives back what it stored."""

import os
import sqlite3
import stat
from contextlib import closing, contextmanager

import numpy as np
import pytest

from tacit.federated import RefusedError, messages, store
from tacit.federated.journal import BegunAgainError, BehindError, PartyJournal
from tacit.federated.store import CoordinatorStore, Entry, Greeting, PartyStore
from tests.federated.conftest import a_study

STUDY = a_study()
S = STUDY.digest
GREETING = Greeting(b"request", b"greeting")
SPENT = [Entry(S, 1, "sums", "gaussian", 2, 3.5)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "journal"


@pytest.fixture(params=["file", "memory"])
def where(request, path):
    """A path, or None: what a journal promises does not depend on what keeps it."""
    return path if request.param == "file" else None


def opened_again(journal, where):
    """A journal that knows only what is stored; what is in memory is there for those who have the store."""
    if isinstance(journal, CoordinatorStore):
        return journal if where is None else CoordinatorStore(where)
    again = PartyJournal(where)
    if where is None:
        again._store = journal._store
    return enrolled(again)


def enrolled(journal):
    """With the data that is stored, as a process does that is started again."""
    stored = journal._store.enrolled(S)
    journal.enrol(STUDY, "a", None, stored.data, GREETING)
    return journal


def accept(journal, number, request):
    """Of a coordinator that holds what the journal stored."""
    return journal.accept(S, number, request, journal._store.state(S).held)


def begun(path, rounds=1):
    journal = PartyJournal(path)
    journal.enrol(STUDY, "a", None, b"data", GREETING)
    for number in range(rounds):
        accept(journal, number, b"request")
        journal.finish(S, number, b"reply %d" % number, {}, [])
    return journal


def test_a_round_belongs_to_the_first_request(where):
    journal = begun(where)
    assert accept(journal, 1, b"one").reply is None
    for again in (journal, opened_again(journal, where)):
        with pytest.raises(RefusedError, match="bound to another request"):
            accept(again, 1, b"two")
        assert accept(again, 1, b"one").reply is None
    journal.finish(S, 1, b"reply", {}, [])
    assert accept(opened_again(journal, where), 1, b"one").reply == b"reply"
    with pytest.raises(RefusedError, match="bound to another request"):
        accept(journal, 1, b"two")


@pytest.mark.parametrize("number", [2, 3, 2**32 - 1])
def test_no_round_is_skipped(where, number):
    journal = begun(where)
    accept(journal, 1, b"accepted, but not finished")
    with pytest.raises(RefusedError, match="the journal has 1"):
        accept(journal, number, b"request")


def test_a_reply_comes_with_its_memory_and_its_cost(where):
    journal = begun(where)
    accept(journal, 1, b"request")
    journal.finish(S, 1, b"reply", {"a": np.arange(3), "b": np.ones(2)}, SPENT)
    journal = opened_again(journal, where)
    state = accept(journal, 2, b"request")
    np.testing.assert_array_equal(state.memory["a"], np.arange(3))
    assert state.made == {"sums": 2}
    journal.finish(S, 2, b"reply", {"b": np.zeros(1)}, [Entry(S, 2, "sums", "gaussian", 1, 3.5)])
    state = accept(journal, 3, b"request")
    assert state.made == {"sums": 3}
    assert {name: len(values) for name, values in state.memory.items()} == {"a": 3, "b": 1}
    assert journal.ledger() == journal.ledger(S) == [*SPENT, Entry(S, 2, "sums", "gaussian", 1, 3.5)]
    assert journal.ledger("another study") == []


def test_the_first_reply_is_the_one_that_is_sent(path):
    first, second = begun(path), enrolled(PartyJournal(path))
    accept(first, 1, b"request")
    accept(second, 1, b"request")
    assert first.finish(S, 1, b"one", {}, SPENT) == b"one"
    assert second.finish(S, 1, b"two", {"x": np.ones(1)}, SPENT) == b"one"
    assert first.ledger() == SPENT
    assert accept(first, 2, b"request").memory == {}


def test_two_processes_take_turns_and_see_what_the_other_stored(path):
    journals = begun(path), enrolled(PartyJournal(path))
    for number in range(1, 7):
        journal = journals[number % 2]
        state = accept(journal, number, b"request")
        assert state.made == ({"sums": 2 * (number - 1)} if number > 1 else {})
        assert [int(x) for x in state.memory.get("rounds", [])] == list(range(1, number))
        spent = [Entry(S, number, "sums", "gaussian", 2, 3.5)]
        journal.finish(S, number, b"reply", {"rounds": np.arange(1, number + 1), "same": np.ones(1)}, spent)
    assert journals[0].ledger() == journals[1].ledger()
    for journal in journals:
        with pytest.raises(RefusedError, match="the journal has 7"):
            accept(journal, 8, b"request")


def test_what_a_round_is_given_and_gives_back_unchanged_stays(where):
    journal = begun(where)
    accept(journal, 1, b"request")
    given = np.ones(2)
    journal.finish(S, 1, b"reply", {"kept": given}, [])
    given[:] = 5.0  # the journal keeps what was stored
    state = accept(journal, 2, b"request")
    assert not state.memory["kept"].flags.writeable
    journal.finish(S, 2, b"reply", dict(state.memory), [])
    for again in (journal, opened_again(journal, where)):
        np.testing.assert_array_equal(accept(again, 3, b"request").memory["kept"], np.ones(2))


@pytest.mark.parametrize("stored", [False, True])
def test_a_round_interrupted_while_it_is_stored_is_looked_up_again(where, monkeypatch, stored):
    """An interruption may come before or after the store has all of it: either way the journal goes by the store."""
    journal = begun(where)
    accept(journal, 1, b"request")
    transaction = journal._store.transaction

    @contextmanager
    def interrupted():
        with transaction():
            yield
            if not stored:
                raise KeyboardInterrupt
        raise KeyboardInterrupt

    monkeypatch.setattr(journal._store, "transaction", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.finish(S, 1, b"reply", {"a": np.ones(1)}, SPENT)
    monkeypatch.undo()
    assert accept(journal, 1, b"request").reply == (b"reply" if stored else None)
    assert journal.finish(S, 1, b"reply again", {"a": np.ones(1)}, SPENT) == (b"reply" if stored else b"reply again")
    assert accept(journal, 2, b"next").made == {"sums": 2}
    assert journal.ledger() == SPENT


def test_a_round_that_cannot_be_stored_leaves_nothing(where):
    journal = begun(where)
    accept(journal, 1, b"request")
    with pytest.raises(TypeError):
        journal.finish(S, 1, b"reply", {"good": np.ones(1), "not good": np.array([None])}, SPENT)
    state = accept(opened_again(journal, where), 1, b"request")
    assert (state.reply, state.memory, state.made) == (None, {}, {})


def test_a_key_is_drawn_once(path):
    key = PartyJournal(path).enrol(STUDY, "a", None, b"data", GREETING)
    assert len(key) == 32
    assert PartyJournal(path).enrol(STUDY, "a", None, b"data", GREETING) == key
    assert PartyJournal().enrol(STUDY, "a", None, b"data", GREETING) != key
    assert PartyJournal().enrol(STUDY, "a", b"given", b"data", GREETING) == b"given"
    assert PartyJournal(path).enrol(a_study(name="another"), "a", None, b"data", GREETING) != key


def test_data_may_change_until_the_first_release(where):
    """With a key of its own each time; a greeting that was given is replaced, and one that was not is due."""
    journal = PartyJournal(where)
    keys = [journal.enrol(STUDY, "a", None, data, GREETING) for data in (b"data", b"mended")]
    assert journal._store.state(S).due == 0
    accept(journal, 0, b"request")
    journal.finish(S, 0, b"reply", {}, [])
    keys.append(journal.enrol(STUDY, "a", None, b"mended again", GREETING))
    assert accept(journal, 0, b"request").reply == b"greeting"
    accept(journal, 1, b"request")  # cut off: nothing was stored
    keys.append(opened_again(journal, where).enrol(STUDY, "a", None, b"mended once more", GREETING))
    assert len(set(keys)) == 4
    assert journal.enrol(STUDY, "a", None, b"mended once more", GREETING) == keys[-1]
    accept(journal, 1, b"another request")
    journal.finish(S, 1, b"reply", {}, SPENT)
    with pytest.raises(ValueError, match="begun with other data"):
        opened_again(journal, where).enrol(STUDY, "a", None, b"data", GREETING)
    with pytest.raises(ValueError, match="party 'a'"):
        opened_again(journal, where).enrol(STUDY, "b", None, b"mended once more", GREETING)


def test_a_process_that_still_works_on_other_data_releases_nothing(path):
    slow = begun(path)
    accept(slow, 1, b"request")
    PartyJournal(path).enrol(STUDY, "a", None, b"mended", GREETING)
    with pytest.raises(RefusedError, match="began again in another process"):
        slow.finish(S, 1, b"of the old data", {}, SPENT)
    assert slow.ledger() == []


@pytest.mark.parametrize("last", [b"mended", b"data"], ids=["other-data", "the-same-data-again"])
def test_a_process_from_before_the_party_began_again_neither_accepts_nor_stores(path, last):
    """Also while the other process answers the same round, and where the old data came back with a new key."""
    stale, fresh = begun(path), PartyJournal(path)
    for data in (b"mended", last):
        fresh.enrol(STUDY, "a", None, data, GREETING)
    for number in (0, 1):
        with pytest.raises(RefusedError, match="began again in another process"):
            accept(stale, number, b"request")
    assert fresh._store.state(S).bound is None
    accept(fresh, 1, b"request")
    with pytest.raises(RefusedError, match="began again in another process"):
        stale.finish(S, 1, b"of the old data", {"x": np.ones(1)}, SPENT)
    assert fresh.ledger() == []
    assert fresh.finish(S, 1, b"of the new data", {}, SPENT) == b"of the new data"
    with pytest.raises(RefusedError, match="began again in another process"):
        stale.finish(S, 1, b"of the old data", {}, SPENT)


def test_a_coordinator_that_holds_other_replies_is_refused(where):
    journal = begun(where, rounds=2)
    held = journal._store.state(S).held
    assert held == messages.held_after(messages.held_after(messages.HOLDS_NOTHING, b"reply 0"), b"reply 1")
    for again in (journal, opened_again(journal, where)):
        with pytest.raises(BehindError, match="has other answers to the first 2 rounds"):
            again.accept(S, 2, b"request", messages.HOLDS_NOTHING)
        with pytest.raises(BehindError, match="the coordinator has 3 answers; the journal has 2"):
            again.accept(S, 3, b"request", held)
    assert journal._store.state(S).bound is None
    with pytest.raises(BegunAgainError):
        begun(None).accept(S, 1, b"request", messages.HOLDS_NOTHING)


def test_a_commit_that_fails_leaves_nothing_and_the_file_usable(path, monkeypatch):
    """Somebody reads the file for longer than a writer waits."""
    monkeypatch.setattr(store, "_WAIT", 0.01)
    journal = begun(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rounds").fetchone()
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                accept(journal, 1, b"request")
    assert journal._store.state(S).bound is None
    assert accept(journal, 1, b"another request").reply is None


def test_files_are_synced_so_that_no_old_state_comes_back(path, monkeypatch):
    monkeypatch.undo()  # tests do without
    for kind in (PartyStore, CoordinatorStore):
        opened = kind(path.with_name(kind.__name__))
        assert opened._database.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert opened._database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_what_is_kept_in_memory_leaves_no_file(path, monkeypatch):
    path.parent.mkdir()
    monkeypatch.chdir(path.parent)
    begun(None)
    CoordinatorStore(None).ask(S, 0, {"a": b"1"})
    assert list(path.parent.iterdir()) == []
    CoordinatorStore(":memory:").ask(S, 0, {"a": b"1"})  # a path is a file, whatever its name
    assert CoordinatorStore(":memory:").asked(S, 0) == {"a": b"1"}


def test_a_journal_is_for_its_owner_alone(path):
    begun(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_a_new_journal_is_private_whatever_the_umask(path, mask):
    path.parent.mkdir()
    before = os.umask(mask)
    try:
        CoordinatorStore(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("rights", [0o666, 0o640, 0o604, 0o620])
def test_a_journal_that_is_open_to_others_is_taken_from_them(path, rights):
    """And its owner hears of it: they may know the key of the noise."""
    begun(path).close()
    path.chmod(rights)
    with pytest.warns(UserWarning, match="open to other users of this machine until now. It is a party's journal"):
        again = PartyJournal(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert accept(enrolled(again), 0, b"request").reply == b"reply 0"


def test_a_journal_of_another_user_is_refused(path, monkeypatch):
    def refused(*_):
        raise PermissionError

    begun(path).close()
    monkeypatch.setattr("tacit.federated.store.os.fchmod", refused)
    with pytest.raises(ValueError, match="is another user's"):
        PartyJournal(path)


def test_other_files_are_refused(path):
    begun(path).close()
    with pytest.raises(ValueError, match="not a coordinator's"):
        CoordinatorStore(path)
    path.write_bytes(b"something else entirely, and long enough to have a header" * 9)
    with pytest.raises(ValueError, match="not the journal"):
        PartyJournal(path)


def test_exchanges(where):
    journal = CoordinatorStore(where)
    assert journal.asked(S, 0) == {}
    journal.ask(S, 0, {"b": b"1", "a": b"2"})
    journal = opened_again(journal, where)
    assert list(journal.asked(S, 0).items()) == [("b", b"1"), ("a", b"2")]
    assert journal.told(S, 0) == {}
    journal.tell(S, 0, {"b": b"3", "a": b"4"})
    assert opened_again(journal, where).told(S, 0) == {"b": b"3", "a": b"4"}
    assert journal.told(S, 1) == journal.told("another", 0) == {}


def test_exchanges_are_forgotten_while_there_is_nothing_but_the_greeting(where):
    journal = CoordinatorStore(where)
    for exchange in range(2):
        journal.ask(S, exchange, {"a": b"1"})
    journal.tell(S, 0, {"a": b"2"})
    journal.ask("another", 0, {"a": b"3"})
    journal.forget(S)
    assert journal.asked(S, 0) == journal.asked(S, 1) == journal.told(S, 0) == {}
    assert journal.asked("another", 0) == {"a": b"3"}
    journal.ask(S, 1, {"a": b"1"})
    journal.tell(S, 1, {"a": b"2"})
    with pytest.raises(ValueError, match="not begun again"):
        journal.forget(S)
