"""The one place where functions are compiled to machine code, which is kept on disk for the next process.

Where no folder can be written (a read-only installation and a read-only home, as in many containers), everything still
works: functions are compiled anew in each process, and a warning says once how to name a folder.

numba numbers the files of a function's forms (types of arguments, values of closures). Two processes that compile two
forms at the same time may give both the same number, and then one form would run in place of the other: sums that do
not clip in place of those that do. So every file says which form of which source it holds, and another one is compiled
anew.

Inside a process it tells closures of one function apart by a number as well, in the order in which they come to be
compiled. Code that is kept calls them by the numbers of the process that kept it, and would reach another closure where
these differ. So each has a name of its own, by the order in which a module makes them.
"""

import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])


class NoCacheWarning(UserWarning):
    """Compiled code cannot be kept on disk."""


_told = False
_made: defaultdict[Any, Any] = defaultdict(itertools.count)  # how many closures of some code there are


class _Checked(IndexDataCacheFile):  # type: ignore[misc]
    """Files that say what they hold."""

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        try:
            stamp, held, data = super().load(key)
        except (TypeError, ValueError):  # none, or one that does not say
            return None
        return data if (stamp, held) == (self._source_stamp, key) else None


def compiled(*, nogil: bool = False) -> Callable[[Function], Function]:
    """A decorator that compiles a function at its first call and keeps the result on disk.

    Never with fastmath, which is said and not left out: numba compiles what says nothing of it with that of its caller.
    Division by zero gives infinity or NaN, as in NumPy: compiled code does not raise in the middle of a fit.
    """
    compile_it = partial(numba.njit, error_model="numpy", nogil=nogil, fastmath=False)

    def decorate(function: Function) -> Function:
        if getattr(function, "__closure__", None):
            function.__qualname__ += f"_{next(_made[function.__code__])}"
        try:
            kept: Any = compile_it(cache=True)(function)
            kept._cache._cache_file.__class__ = _Checked
            return cast(Function, kept)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        _tell_once()
        return cast(Function, compile_it(cache=False)(function))

    return decorate


def _tell_once() -> None:
    global _told
    if not _told:
        _told = True
        warnings.warn(
            "compiled code cannot be kept, as neither the folder of this package nor the user's cache folder can be"
            " written: each process compiles again, which takes up to a minute. Set the environment variable"
            " NUMBA_CACHE_DIR to a folder that can be written.",
            NoCacheWarning,
            stacklevel=4,
        )
