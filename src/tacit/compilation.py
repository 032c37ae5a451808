"""The one place where functions are compiled to machine code, which is kept on disk for the next process.

Where no folder can be written (a read-only installation and a read-only home, as in many containers), everything still
works: functions are compiled anew in each process, and a warning says once how to name a folder.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


class NoCacheWarning(UserWarning):
    """Compiled code cannot be kept on disk."""


_told = False


def compiled(*, nogil: bool = False) -> Callable[[Function], Function]:
    """A decorator that compiles a function at its first call and keeps the result on disk.

    Never with fastmath, which is said and not left out: numba compiles what says nothing of it with that of its caller.
    Division by zero gives infinity or NaN, as in NumPy: compiled code does not raise in the middle of a fit.
    """
    compile_it = partial(numba.njit, error_model="numpy", nogil=nogil, fastmath=False)

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, compile_it(cache=True)(function))
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
