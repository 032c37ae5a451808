"""A table about made-up people, and the command line run in the same process."""

import numpy as np
import pandas as pd

from tacit.cli import main

KINDS = ["clerk", "farmer", "nurse"]
CLASSES = ["<=50K", ">50K"]


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    kind = rng.choice(KINDS, n)
    hours = rng.normal(40, 8, n).round(1)
    score = 0.08 * (age - 45) + 1.5 * (kind == "nurse") + 0.05 * (hours - 40)
    rich = score + rng.logistic(size=n) * 0.3 > 0
    return pd.DataFrame(
        {
            "age": age,
            "kind": kind,
            "hours": hours,
            "grade": rng.choice([1, 2, 3], n),
            "income": np.where(rich, CLASSES[1], CLASSES[0]),
            "wage": (2000 + 300 * score).round(2),
        }
    )


def declared(*extra):
    """The flags under which nothing is left to be found out."""
    numbers = ["--numbers", "age,hours"]
    return ["--categories", "kind=clerk,farmer,nurse", "--categories", "grade=1,2,3", *numbers, *extra]


def tacit(capsys, *words):
    """The exit code, the standard output and the standard error."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as stopped:
        code = stopped.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err
