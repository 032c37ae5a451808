"""Which cases of a test run every day.

A test with many cases runs a few of them in `make test`, spread evenly over all of them, and all in `make test-all`.
Which ones differs from test to test, so that every estimator, solver, loss and storage has its share of every day.
`@pytest.mark.whole` is for tests whose cases all run every day: they are quick, or each stands for itself.
"""

from collections import defaultdict
from zlib import crc32

import pytest

DAILY = 3  # cases of a test


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None and item.get_closest_marker("whole") is None:
            tests[item.nodeid.split("[")[0]].append(item)
    for name, cases in tests.items():
        first = crc32(name.encode())
        daily = {(first + k * len(cases) // DAILY) % len(cases) for k in range(DAILY)}
        for place, case in enumerate(cases):
            if len(cases) > DAILY and place not in daily:
                case.add_marker(pytest.mark.slow)
