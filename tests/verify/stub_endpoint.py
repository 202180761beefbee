"""A stub of an OpenAI-compatible endpoint: a server of the standard library that answers as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any]


class Stub:
    """What was asked, and how many requests were open at once."""

    def __init__(self, answer: Callable[[dict[str, Any], int], Reply]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.open = self.most_open = 0
        self.lock = threading.Lock()
        self.url = ""


def said(text: str) -> Reply:
    """Make the reply of a model that says a text."""
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}}]}


@contextmanager
def stub_endpoint(answer: Callable[[dict[str, Any], int], Reply]) -> Iterator[Stub]:
    """Serve on a free loopback port; ``answer`` gets the request and how often its like came before."""
    stub = Stub(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with stub.lock:
                before = stub.requests.count(body)
                stub.requests.append(body)
                stub.headers.append(dict(self.headers))
                stub.paths.append(self.path)
                stub.open += 1
                stub.most_open = max(stub.most_open, stub.open)
            status, reply = stub.answer(body, before)
            with stub.lock:
                stub.open -= 1
            data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
