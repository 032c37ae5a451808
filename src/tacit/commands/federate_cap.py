"""`tacit federate cap`: fix what all studies on the same people may give away together."""

from argparse import Namespace

from tacit.federated import Cap


def run(arguments: Namespace) -> int:
    """Make the file."""
    told = arguments.epsilon, arguments.delta, arguments.people, arguments.adjacency
    Cap.create(arguments.file, *told).close()
    print(f"{arguments.file} is the cap on {arguments.people}; name it with --cap, or as `cap` in [network].")
    return 0
