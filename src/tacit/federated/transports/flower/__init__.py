"""The Flower engine as a transport between organisations: TLS, authenticated parties, and none of its code shipping.

Flower moves the bytes: a SuperLink at the coordinator, a SuperNode at each party. It can also send the coordinator's
Python code to the parties and run it there; that part is not used. A party's process takes the messages from its own
SuperNode and answers them with the installed `tacit`, so a coordinator can ask and nothing else.
"""

import os

# For the engine when it is first imported, here and in the processes that are started from here.
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"
_direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"{_direct},127.0.0.1" if _direct else "127.0.0.1"
