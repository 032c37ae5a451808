"""All parties in one process: no network, the same bytes."""

from collections.abc import Iterable, Mapping

from tacit.federated.responder import Responder


class InProcess:
    """Hands each request to the party's node and takes its reply, one party after the other."""

    def __init__(self, nodes: Iterable[Responder]) -> None:
        self._nodes = {node.name: node for node in nodes}

    def exchange(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        """The replies of the parties that are asked."""
        unknown = sorted(set(requests) - set(self._nodes))
        if unknown:
            raise ValueError(f"no such party here: {', '.join(unknown)}")
        return {name: self._nodes[name].answer(request) for name, request in requests.items()}
