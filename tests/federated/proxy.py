"""A small CONNECT proxy on the loopback: real tunnels, one thread each way."""

import socket
import threading


class Proxy:
    """Gives tunnels to whoever asks, or one fixed answer; what was asked is kept."""

    def __init__(self, answer=None):
        self.asked, self._answer = [], answer

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=[client], daemon=True).start()

    def _tunnel(self, client):
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                more = client.recv(1)
                if not more:
                    return
                head += more
            self.asked.append(head.decode())
            if self._answer is not None:
                client.sendall(self._answer)
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            try:
                target = socket.create_connection((host, int(port)))
            except OSError:
                client.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            with target:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_copy, args=[target, client], daemon=True)
                back.start()
                _copy(client, target)
                back.join()


def _copy(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
