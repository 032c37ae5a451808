"""`NoiseSource`: where all noise comes from.

What holds, and must never change:

- A source made without a seed takes its 256-bit key from the operating system.
- The key is replaced after every block, so memory read later tells nothing of noise drawn before.
- No two sources share words: not across threads (a source belongs to the thread that first draws from it), not
  across a fork (the child draws a new key), not by pickling or copying (both are refused).
- A seeded source repeats its words for the same seed. Whoever knows the seed can subtract the noise.
- A source made from a key repeats its words for the same key; that no key serves two releases is its maker's duty.

Not covered: memory disclosure of the current block, cloned virtual machines, timing.
"""

import hashlib
import os
import threading
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.noise.stream import KEY_BYTES, write_key_stream

Words = NDArray[np.uint64]

BLOCK_WORDS = 1 << 14
_CARRY_WORDS = 1 << 8  # room before a block for the words an unfinished draw has yet to use
_LABEL = b"tacit.privacy.NoiseSource/1:"
_NO_WORDS: Words = np.empty(0, dtype=np.uint64)

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_count_fork)


class NoiseSource:
    """A cryptographic source of 64-bit words, for one fit in one thread.

    Parameters
    ----------
    seed : int, optional
        None (the default) takes a fresh key from the operating system. A whole number gives the same words every
        time, for tests and research only: the noise can then be subtracted by anyone who knows the number.

    Examples
    --------
    >>> from tacit.privacy import NoiseSource
    >>> source = NoiseSource()
    >>> source.words(3).shape
    (3,)
    """

    __slots__ = ("__weakref__", "_at", "_buffer", "_key", "_made_after", "_owner", "_process", "_seeded")

    def __init__(self, seed: int | None = None) -> None:
        if seed is None:
            key = os.urandom(KEY_BYTES)
        else:
            number = checks.whole_seed(seed)
            key = hashlib.sha256(_LABEL + b"seed:" + str(number).encode()).digest()
        self._start(key, seeded=seed is not None)

    @classmethod
    def from_key(cls, key: bytes, *, seeded: bool) -> "NoiseSource":
        """A source that gives the same words for the same 256-bit key, so that a release can be made again as it was.

        Two different releases under one key would share their noise, and their difference would tell the data. Whoever
        calls this must hold on disk, before the first word is drawn, which one release (or round of releases) the key
        belongs to, must never use it for another, and must keep the key as secret as the data. `seeded` says whether
        the key follows from a number that others may know.
        """
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ValueError(f"a key is {KEY_BYTES} bytes")
        source = object.__new__(cls)
        source._start(hashlib.sha256(_LABEL + b"key:" + key).digest(), seeded=seeded)
        return source

    def _start(self, key: bytes, *, seeded: bool) -> None:
        self._key = key
        self._seeded = seeded
        self._buffer: Words = _NO_WORDS
        self._at = 0
        # A fork is told by either: the counter sees those made by Python, the number those made behind its back.
        self._process, self._made_after = os.getpid(), _forks
        self._owner: int | None = None

    @property
    def seeded(self) -> bool:
        """Whether the words can be reproduced by someone who knows a number."""
        return self._seeded

    def spawn(self) -> "NoiseSource":
        """An independent source, for another thread or worker; keyed by words of this one."""
        key = hashlib.sha256(_LABEL + b"spawn:" + self.words(KEY_BYTES // 8).tobytes()).digest()
        child = object.__new__(NoiseSource)
        child._start(key, seeded=self._seeded)
        return child

    def words(self, size: int) -> Words:
        """The next `size` words, uniform on 0 .. 2^64 - 1."""
        size = checks.count("size", size, least=0)
        out = np.empty(size, dtype=np.uint64)
        done = 0
        while done < size:
            buffer, at = self.window()
            take = min(size - done, len(buffer) - at)
            out[done : done + take] = buffer[at : at + take]
            done += take
            self.consume(at + take)
            if done < size:
                self.refill()
        return out

    def word(self) -> int:
        """The next word."""
        return int(self.words(1)[0])

    def window(self) -> tuple[Words, int]:
        """The buffered words and the place of the next unused one, for a sampler that will `consume` them."""
        self._check_place()
        return self._buffer, self._at

    def consume(self, at: int) -> None:
        """Say that the words before `at` are used up."""
        if not self._at <= at <= len(self._buffer):
            raise ValueError("words can only be used up, never handed back")
        self._at = at

    def refill(self) -> None:
        """Put a new block behind the words not yet used."""
        self._check_place()
        if not self._key:
            raise RuntimeError("this NoiseSource was interrupted while it made words; make a new one")
        left = self._buffer[self._at :].copy()
        room = max(_CARRY_WORDS, len(left))
        buffer = self._buffer if len(self._buffer) == room + BLOCK_WORDS else np.empty(room + BLOCK_WORDS, np.uint64)
        # From here to the last line the source has no key and no words: stopped in between (Ctrl-C, a timeout), it
        # refuses to go on. With the old key or the old words in place it would repeat them.
        key, self._key, self._at = self._key, b"", len(self._buffer)
        buffer[room - len(left) : room] = left
        key = write_key_stream(key, buffer[room:].view(np.uint8).data)
        self._buffer, self._at, self._key = buffer, room - len(left), key

    def _check_place(self) -> None:
        """Re-key in a forked child; refuse a second thread."""
        if self._process != os.getpid() or self._made_after != _forks:
            # Fresh entropy, mixed with the key: two children of one parent must differ as well.
            self._start(
                hashlib.sha256(_LABEL + b"fork:" + self._key + os.urandom(KEY_BYTES)).digest(),
                seeded=self._seeded,
            )
        here = threading.get_ident()
        if self._owner is None:
            self._owner = here
        elif self._owner != here:
            raise RuntimeError(
                "a NoiseSource belongs to the thread that first drew from it;"
                " give the other thread source.spawn() instead"
            )

    def __repr__(self) -> str:
        return f"NoiseSource({'seeded' if self._seeded else 'fresh key'})"

    def __reduce_ex__(self, *_: Any) -> NoReturn:
        raise TypeError("a NoiseSource cannot be pickled or copied: two holders of one key would draw the same noise")

    __copy__ = __deepcopy__ = __getstate__ = __reduce__ = __reduce_ex__
