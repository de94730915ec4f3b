"""A server that answers every request with the same bytes, and goes on where it is asked to."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class HostileServer:
    """`head` once, then `again` for ever where it is given."""

    def __init__(self, head: bytes, again: bytes = b"") -> None:
        self._head, self._again = head, again
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while client.recv(65536):
                client.sendall(self._head)
                while self._again:
                    client.sendall(self._again)


def json_answer(body: bytes, status: str = "200 OK") -> bytes:
    """Return a whole answer with a JSON body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body
