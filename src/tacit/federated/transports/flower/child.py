"""What runs in an engine process: this file as a script, with `superlink` or `supernode` and the engine's arguments.

The process ends when the one that started it is gone. Of a SuperLink only the routes of parties, who prove who they
are, are open to the network; everything else of it (starting runs, registering parties, taking messages) answers to
the process that started it alone, which knows a secret. It imports nothing of `tacit`, so that it starts quickly.
"""

import hmac
import os
import sys
from typing import Any

SECRET_VARIABLE, PARENT_VARIABLE = "TACIT_ENGINE_SECRET", "TACIT_ENGINE_PARENT"
SECRET_HEADER = "x-tacit-engine"
_ROUTES_OF_PARTIES = "/v1/fleet/"


class Guard:
    """ASGI middleware that answers 404 to whoever does not know the secret, except on the routes of parties."""

    def __init__(self, app: Any, secret: str) -> None:
        self._app = app
        self._secret = secret.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or not."""
        if scope["type"] == "lifespan" or self._lets_in(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body"})
        else:
            await send({"type": "websocket.close"})

    def _lets_in(self, scope: Any) -> bool:
        given = dict(scope["headers"]).get(SECRET_HEADER.encode(), b"")
        return scope["path"].startswith(_ROUTES_OF_PARTIES) or hmac.compare_digest(given, self._secret)


def superlink(secret: str) -> None:
    """Flower's own `flower-superlink`, behind the guard."""
    import uvicorn
    from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
    from flwr.superlink.main import create_app

    config = _parse_superlink_lifespan_config()
    app = create_app(config, SuperLinkLifespan)
    app.add_middleware(Guard, secret=secret)
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        ssl_keyfile=config.ssl_keyfile,
        ssl_certfile=config.ssl_certfile,
        access_log=False,
    )


def supernode() -> None:
    """Flower's own `flower-supernode`."""
    from flwr.supernode.cli.flower_supernode import flower_supernode

    flower_supernode()


def main() -> None:
    """Run the engine that is named first; it reads the other arguments itself."""
    from flwr.supercore.app_utils import start_parent_process_monitor

    role = sys.argv.pop(1)
    secret = os.environ.pop(SECRET_VARIABLE)
    start_parent_process_monitor(int(os.environ.pop(PARENT_VARIABLE)))
    if role == "superlink":
        superlink(secret)
    else:
        supernode()


if __name__ == "__main__":
    main()
