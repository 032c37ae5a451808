"""`NoiseSource`: what it repeats, what it refuses, and what it forgets."""

import copy
import hashlib
import pickle
import random
import signal
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.privacy.noise import NoiseSource, samplers
from tacit.privacy.noise import source as module
from tacit.privacy.noise.source import BLOCK_WORDS


def slots(source):
    return {name: getattr(source, name) for name in NoiseSource.__slots__ if name != "__weakref__"}


def shows(source, secret):
    """Whether the bytes of `secret` can be reached from the object."""
    return any(
        secret in (value.tobytes() if isinstance(value, np.ndarray) else value if isinstance(value, bytes) else b"")
        for value in slots(source).values()
    )


# Keys


def test_a_key_gives_its_own_words_every_time():
    keys = [bytes(32), bytes(31) + b"\1", hashlib.sha256(b"tacit.privacy.NoiseSource/1:seed:0").digest()]
    words = [NoiseSource.from_key(key, seeded=False).words(3).tolist() for key in keys for _ in range(2)]
    assert words[::2] == words[1::2]
    assert len({tuple(found) for found in [*words, NoiseSource(0).words(3).tolist()]}) == 4


def test_a_source_from_a_key_is_like_any_other():
    assert [NoiseSource.from_key(bytes(32), seeded=seeded).seeded for seeded in (True, False)] == [True, False]
    source = NoiseSource.from_key(b"k" * 32, seeded=False)
    source.words(1)
    assert not shows(source, b"k" * 32)
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        copy.copy(source)


@pytest.mark.parametrize("key", [b"short", bytes(33), "k" * 32, None])
def test_what_is_not_a_key_is_refused(key):
    with pytest.raises(ValueError, match="32 bytes"):
        NoiseSource.from_key(key, seeded=False)


# Seeds


def documented_words(seed, blocks):
    """SHA-256 of label and number keys the first block; a block is led by the key of the next."""
    key = hashlib.sha256(b"tacit.privacy.NoiseSource/1:seed:" + str(seed).encode()).digest()
    words = []
    for _ in range(blocks):
        stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(32 + 8 * BLOCK_WORDS))
        key = stream[:32]
        words.append(np.frombuffer(stream[32:], dtype="<u8"))
    return np.concatenate(words)


def test_seeded_words_are_the_documented_ones():
    assert NoiseSource(7).words(3 * BLOCK_WORDS).tolist() == documented_words(7, 3).tolist()


FIRST_WORDS_OF_SEED_0 = ["40e7abd609b1ccd4", "2f5f0e8501204fa4", "0057b3b342bfa417"]


def test_seeded_words_never_change_between_versions():
    assert [f"{word:016x}" for word in NoiseSource(0).words(3).tolist()] == FIRST_WORDS_OF_SEED_0


@pytest.mark.parametrize("sizes", [(10, 5), (0, 15), (1,) * 15, (14, 0, 1)])
def test_words_do_not_depend_on_how_they_are_asked_for(sizes):
    source = NoiseSource(1)
    parts = np.concatenate([source.words(size) for size in sizes])
    assert parts.tolist() == NoiseSource(1).words(15).tolist()


def test_words_do_not_depend_on_where_blocks_end():
    whole = NoiseSource(2).words(5 * BLOCK_WORDS)
    for step in (BLOCK_WORDS, BLOCK_WORDS - 1, BLOCK_WORDS + 1, 1000, 2 * BLOCK_WORDS + 3):
        source = NoiseSource(2)
        taken = []
        while len(taken) + step <= len(whole):
            taken.extend(source.words(step).tolist())
        assert taken == whole[: len(taken)].tolist()


def test_unused_words_survive_a_refill():
    """Also more of them than there is room for in front of a block."""
    for used in (0, 1, BLOCK_WORDS // 2, BLOCK_WORDS - 300, BLOCK_WORDS - 256, BLOCK_WORDS - 1, BLOCK_WORDS):
        source = NoiseSource(3)
        source.words(used)
        source.refill()
        source.refill()
        assert source.words(2 * BLOCK_WORDS).tolist() == NoiseSource(3).words(used + 2 * BLOCK_WORDS)[used:].tolist()


def mixed(source):
    return [
        source.words(3).tolist(),
        samplers.normals(source, 1000).tolist(),
        source.word(),
        samplers.laplaces(source, 500).tolist(),
        samplers.Candidates(np.arange(20) << 31).pick(source, 50).tolist(),
        samplers.poisson_sample(source, 100, 0.5).tolist(),
        source.spawn().words(2).tolist(),
        samplers.normals(source, 30_000).tolist(),
        source.words(2).tolist(),
    ]


def test_samplers_and_words_in_turn_are_repeatable():
    assert mixed(NoiseSource(4)) == mixed(NoiseSource(4))
    assert mixed(NoiseSource(4)) != mixed(NoiseSource(5))


@pytest.mark.parametrize("draw", [samplers.normals, samplers.laplaces])
def test_draws_do_not_depend_on_how_they_are_asked_for(draw):
    source, sizes = NoiseSource(6), [1, 0, 7, 20_000, 3, 40_000]
    parts = np.concatenate([draw(source, size) for size in sizes])
    other = NoiseSource(6)
    assert parts.tolist() == draw(other, sum(sizes)).tolist()
    assert source.word() == other.word()


@pytest.mark.parametrize(
    "seed", [True, False, np.True_, 1.0, np.float64(3), "7", b"7", (1,), np.array([1, 2]), object()]
)
def test_seeds_that_are_not_whole_numbers_are_refused(seed):
    with pytest.raises(TypeError, match="whole number"):
        NoiseSource(seed)


@pytest.mark.parametrize(
    "generator", [np.random.RandomState(1), np.random.default_rng(1), np.random.PCG64(1), random.Random(1)]
)
def test_generators_are_refused(generator):
    with pytest.raises(TypeError, match="not cryptographic"):
        NoiseSource(generator)


@pytest.mark.parametrize("seed", [-1, np.int64(-5)])
def test_negative_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="random_state must be at least 0"):
        NoiseSource(seed)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint64])
def test_numpy_integers_are_seeds(kind):
    assert NoiseSource(kind(9)).word() == NoiseSource(9).word()


def test_every_seed_has_its_own_words():
    seeds = [*range(500), 2**32, 2**64, 2**64 + 1, 2**200]
    assert len({NoiseSource(seed).word() for seed in seeds}) == len(seeds)


def test_says_whether_it_is_seeded():
    assert NoiseSource(0).seeded
    assert NoiseSource(0).spawn().seeded
    assert not NoiseSource().seeded
    assert not NoiseSource().spawn().seeded


# No two sources share words. Two words agree by chance with probability 2^-64.


def test_fresh_sources_differ():
    sources = [NoiseSource() for _ in range(200)]
    assert len({source.word() for source in sources}) == 200


def test_a_fresh_key_comes_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr(module.os, "urandom", lambda size: asked.append(size) or bytes(size))
    one, other = NoiseSource(), NoiseSource()
    assert asked == [32, 32]
    assert one.word() == other.word()  # nothing else enters the key


@pytest.mark.parametrize("seed", [None, 8])
def test_spawned_sources_differ_from_all_others(seed):
    parent = NoiseSource(seed)
    children = [parent.spawn() for _ in range(20)]
    family = [parent, *children, *(child.spawn() for child in children)]
    words = np.concatenate([member.words(200) for member in family])
    assert len(set(words.tolist())) == len(words)


def test_spawning_is_repeatable_and_moves_the_parent_on():
    one, other = NoiseSource(9), NoiseSource(9)
    assert one.spawn().words(5).tolist() == other.spawn().words(5).tolist()
    assert one.word() == other.word()
    assert one.spawn().word() != NoiseSource(9).spawn().word()


def test_no_word_repeats_over_many_blocks():
    words = NoiseSource(10).words(40 * BLOCK_WORDS)
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, joblib.hash, NoiseSource.__getstate__, NoiseSource.__reduce__]
    + [lambda source, p=p: pickle.dumps(source, protocol=p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    + [lambda source: copy.deepcopy({"held": [source]}), lambda source: pickle.dumps((source,))],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_copies_and_pickles_are_refused(duplicate, seed):
    source = NoiseSource(seed)
    source.word()
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(source)


def test_has_no_dictionary_to_copy_from():
    with pytest.raises(TypeError):
        vars(NoiseSource())


# What it forgets


def test_repr_shows_neither_key_nor_seed():
    assert repr(NoiseSource()) == "NoiseSource(fresh key)"
    assert repr(NoiseSource(123456)) == str(NoiseSource(123456)) == "NoiseSource(seeded)"


@pytest.mark.parametrize("seed", [None, 11])
def test_the_key_is_gone_after_each_block(seed):
    source = NoiseSource(seed)
    old = []
    for _ in range(5):
        old.append(source._key)
        assert shows(source, source._key)
        source.words(BLOCK_WORDS)
        assert not any(shows(source, key) for key in old)
    assert len({*old, source._key}) == 6


def test_the_key_of_the_next_block_is_never_given_out_as_words():
    source = NoiseSource(12)
    words = source.words(4 * BLOCK_WORDS).tobytes()
    assert source._key not in words


def test_words_given_out_are_not_the_buffer():
    source = NoiseSource(13)
    words = source.words(10)
    words[:] = 0
    assert source.words(5).tolist() == NoiseSource(13).words(15)[10:].tolist()
    assert not np.shares_memory(words, source._buffer)


# An exception in the middle of a refill: Ctrl-C, a timeout, no memory


class TimeIsUpError(Exception):
    """Stands for KeyboardInterrupt, or for a timeout by signal."""


def stopped_before(_key, _target):
    raise TimeIsUpError


def stopped_after(key, target, write=module.write_key_stream):
    write(key, target)
    raise TimeIsUpError


@pytest.mark.parametrize("stopped", [stopped_before, stopped_after])
@pytest.mark.parametrize("left", [0, 5, 2 * 256])
def test_an_interrupted_refill_never_repeats_words(monkeypatch, stopped, left):
    """Neither the block in the buffer nor, under the key not yet replaced, the block that was being made."""
    source = NoiseSource(14)
    source.words(BLOCK_WORDS - left)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_key_stream", stopped)
        with pytest.raises(TimeIsUpError):
            source.words(left + 1)
        with pytest.raises(RuntimeError, match="interrupted"):
            source.refill()
    with pytest.raises(RuntimeError, match="interrupted"):
        source.words(3 * BLOCK_WORDS)
    with pytest.raises(RuntimeError, match="interrupted"):
        samplers.normals(source, 1)
    with pytest.raises(RuntimeError, match="interrupted"):
        source.spawn()


def test_an_interrupted_first_refill_does_not_serve_unset_memory(monkeypatch):
    source = NoiseSource(15)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_key_stream", stopped_before)
        with pytest.raises(TimeIsUpError):
            source.word()
    with pytest.raises(RuntimeError, match="interrupted"):
        source.word()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_words_do_not_repeat_after_a_timeout_by_signal():
    """The same with real signals, at 100 random moments."""
    script = Path(__file__).with_name("timeouts.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0"]


@pytest.mark.parametrize("size", [-1, 1.5, True, None])
def test_sizes_that_are_not_counts_are_refused(size):
    with pytest.raises((TypeError, ValueError), match="size must be"):
        NoiseSource(1).words(size)
