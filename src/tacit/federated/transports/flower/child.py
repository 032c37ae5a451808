"""What runs in an engine process: this file as a script, with `superlink` or `supernode` and the engine's arguments.

The process ends when the one that started it is gone. Of a SuperLink only the routes of parties, who prove who they
are, are open to the network; everything else of it (starting runs, registering parties, taking messages) answers to
the process that started it alone, which knows a secret. The engine itself reads a whole request before it looks at who
sent it; so the length of a request is limited here, and those who cannot show a party's key may send very little. It
imports nothing of `tacit`, so that it starts quickly.
"""

import hmac
import os
import sys
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from typing import Any

SECRET_VARIABLE, PARENT_VARIABLE = "TACIT_ENGINE_SECRET", "TACIT_ENGINE_PARENT"
PARTIES_VARIABLE = "TACIT_ENGINE_PARTIES"
SECRET_HEADER = "x-tacit-engine"
_ROUTES_OF_PARTIES = "/v1/fleet/"
LONGEST, LONGEST_OF_STRANGERS = 1 << 28, 1 << 16  # bytes of a request: of a party, and of anybody

Headers = dict[bytes, bytes]


class Guard:
    """ASGI middleware that answers 404 to whoever does not know the secret, except on the routes of parties.

    There it answers 413 to requests that are too long. `is_party` tells by the headers whether a party sent them.
    """

    def __init__(self, app: Any, secret: str, is_party: Callable[[Headers], bool]) -> None:
        self._app = app
        self._secret = secret.encode()
        self._is_party = is_party

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if hmac.compare_digest(headers.get(SECRET_HEADER.encode(), b""), self._secret):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close"})
        elif not scope["path"].startswith(_ROUTES_OF_PARTIES):
            await _answer(send, 404)
        else:
            body = await _body(headers, receive, LONGEST if self._is_party(headers) else LONGEST_OF_STRANGERS)
            if body is None:
                await _answer(send, 413)
            else:
                await self._app(scope, _once(body, receive), send)


async def _answer(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body"})


async def _body(headers: Headers, receive: Any, longest: int) -> bytes | None:
    """The body of a request; None if it is longer than that, of which no more is kept then."""
    told = headers.get(b"content-length", b"0")
    if not told.isdigit() or len(told) > 12 or int(told) > longest:
        return None
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or len(body) > longest:
            return None
        more = message.get("more_body", False)
    return bytes(body)


def _once(body: bytes, receive: Any) -> Any:
    """What gives the body that was read already, and then whatever else comes."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Any:
        return left.pop() if left else await receive()

    return given


def party_by_key(keys: frozenset[bytes]) -> Callable[[Headers], bool]:
    """Whether headers show one of these public keys, and the time signed with it, as the engine's parties do.

    The engine checks the same again, and more, when it has read the request.
    """
    from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
    from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
    from flwr.supercore.date import now
    from flwr.supercore.primitives.asymmetric import bytes_to_public_key, verify_signature

    key_name, signature_name, time_name = (
        name.lower().encode() for name in (FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER, TIMESTAMP_HEADER)
    )

    def is_party(headers: Headers) -> bool:
        try:
            key = b64decode(headers[key_name], validate=True)
            if key not in keys:
                return False
            signed, signature = headers[time_name], b64decode(headers[signature_name], validate=True)
            age = (now() - datetime.fromisoformat(signed.decode("ascii"))).total_seconds()
            fresh = -SYSTEM_TIME_TOLERANCE < age < TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
            return fresh and bool(verify_signature(bytes_to_public_key(key), signed, signature))
        except (KeyError, ValueError, TypeError):
            return False

    return is_party


def superlink(secret: str, keys: frozenset[bytes]) -> None:
    """Flower's own `flower-superlink`, behind the guard."""
    import uvicorn
    from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
    from flwr.superlink.main import create_app

    config = _parse_superlink_lifespan_config()
    app = create_app(config, SuperLinkLifespan)
    app.add_middleware(Guard, secret=secret, is_party=party_by_key(keys))
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        ssl_keyfile=config.ssl_keyfile,
        ssl_certfile=config.ssl_certfile,
        access_log=False,
    )


def main() -> None:
    """Run the engine that is named first; it reads the other arguments itself."""
    from flwr.supercore.app_utils import start_parent_process_monitor

    role = sys.argv.pop(1)
    secret = os.environ.pop(SECRET_VARIABLE)
    parties = os.environ.pop(PARTIES_VARIABLE).split(",")
    start_parent_process_monitor(int(os.environ.pop(PARENT_VARIABLE)))
    if role == "superlink":
        superlink(secret, frozenset(map(b64decode, parties)))
    else:
        from flwr.supernode.cli.flower_supernode import flower_supernode

        flower_supernode()


if __name__ == "__main__":
    main()
