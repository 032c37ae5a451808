"""Two parties of a million people, matched by keyed hashes: processor time and bytes, all in one process.

    python -m benchmarks.federated.alignment [--ids 1100000 1000000] [--common 900000]
    python -m benchmarks.federated.alignment --psi [--ids 220000 200000] [--common 180000]

With --psi by a private set intersection, which needs `openmined-psi`; of a fifth of the people, as it takes time.

The baseline is the same intersection of the plain ids as Python sets, in the same run: what matching would cost if
nothing had to be hidden.
"""

import argparse
import time
from collections.abc import Mapping

from tacit.federated import Member, Study
from tacit.federated.alignment import Alignment
from tacit.federated.matching import Matcher, match
from tacit.federated.pairs import PairMatcher, match_pair
from tacit.federated.proposal import SOME, Proposal
from tacit.federated.transports.in_process import InProcess

LIMIT_SECONDS, LIMIT_MB = 30.0, 50.0  # of keyed hashes
HASHED, BLINDED = (1_100_000, 1_000_000, 900_000), (220_000, 200_000, 180_000)  # ids of both, and how many are common
_SECRET = b"a secret that is only for this measurement"


class Counting(InProcess):
    """Counts the bytes of all messages, in both directions."""

    sent = 0

    def exchange(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        """The replies of the parties that are asked."""
        replies = super().exchange(requests)
        self.sent += sum(map(len, [*requests.values(), *replies.values()]))
        return replies


def main() -> None:
    """Measure, and print one line of a table."""
    parser = argparse.ArgumentParser(description="Match the ids of two parties.")
    parser.add_argument("--psi", action="store_true", help="by private set intersection")
    parser.add_argument("--ids", type=int, nargs=2)
    parser.add_argument("--common", type=int)
    told = parser.parse_args()
    *sizes, common = BLINDED if told.psi else HASHED
    sizes, common = told.ids or sizes, common if told.common is None else told.common
    ids = {
        "a": [f"person-{i}" for i in range(sizes[0])],
        "b": [f"person-{sizes[0] - common + i}" for i in range(sizes[1])],
    }
    members = tuple(Member(name, 1, True) for name in ids)
    study = Study("alignment", "squared", members, SOME, 1.0, membership="agreed")
    proposal = Proposal(study, own_delta=False)
    start = time.process_time()
    plain = len(set(ids["a"]) & set(ids["b"]))
    baseline = time.process_time() - start
    start = time.process_time()
    kind, find = (PairMatcher, match_pair) if told.psi else (Matcher, match)
    matchers = [kind(proposal, name, Alignment.of(own, _SECRET)) for name, own in ids.items()]
    wire = Counting(matchers)
    found = find(proposal, wire)
    orders = [matcher.common.order for matcher in matchers]
    seconds = time.process_time() - start
    if not found == plain == common or any(len(order) != found for order in orders):
        raise SystemExit("the common people are not those of the sets")
    if any(ids["a"][i] != ids["b"][j] for i, j in zip(*orders, strict=True)):
        raise SystemExit("the parties' rows are not in one order")
    megabytes = wire.sent / 1e6
    print("| ids | common | seconds of processor, all parties | times plain sets | MB sent |")
    print("|---|---|---|---|---|")
    counts = " and ".join(f"{len(own):,}" for own in ids.values())
    print(f"| {counts} | {found:,} | {seconds:.1f} | {seconds / baseline:.0f} | {megabytes:.1f} |")
    if not told.psi and (seconds > LIMIT_SECONDS or megabytes > LIMIT_MB):
        raise SystemExit(f"more than {LIMIT_SECONDS:g} s or {LIMIT_MB:g} MB")


if __name__ == "__main__":
    main()
