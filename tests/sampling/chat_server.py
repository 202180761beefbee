"""A server of OpenAI's chat completions on loopback: deterministic answers, and whatever fault a test asks for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

TAPS = [json.dumps({"action": "click", "x": 100 * k, "y": 500}) for k in range(1, 10)]
Fault = tuple[int, dict[str, str], str] | Literal["cut", "half"]
"""A status with headers and a body; a line that is cut before or in the middle of the answer."""


@dataclass
class ChatServer:
    """What it does, and what it has seen.

    Args:
        takes_n: Whether it obeys n; else it gives one answer a call.
        most: Choices a call at most.
        logprobs: Whether it gives them.
        token_ids: Whether it gives them.
        context: Longest prompt in words; a longer one is refused as vLLM refuses it.
        key: The only key it takes.
        fault: Given the body and how often it came before; None: answer well.
        seen: Called with each body before it is answered, outside any lock.
    """

    takes_n: bool = True
    most: int = 64
    logprobs: bool = True
    token_ids: bool = True
    context: int | None = None
    key: str | None = None
    fault: Callable[[dict[str, Any], int], Fault | None] = lambda body, before: None
    seen: Callable[[dict[str, Any]], None] = lambda body: None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    keys: set[str | None] = field(default_factory=set)
    open: int = 0
    most_open: int = 0
    keep_bodies: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        n = min(body.get("n", 1) if self.takes_n else 1, self.most)
        return {
            "object": "chat.completion",
            "choices": [self._choice(body, k) for k in reversed(range(n))],  # out of order, as a server may
            "usage": {"prompt_tokens": words(body), "completion_tokens": 3 * n},
        }

    def _choice(self, body: dict[str, Any], k: int) -> dict[str, Any]:
        text = answer(body, body.get("seed", 0) + k)
        ids = list(text.encode())
        choice: dict[str, Any] = {
            "index": k,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        if self.logprobs and body.get("logprobs"):
            content = [{"token": chr(i), "logprob": -i / 1000, "top_logprobs": []} for i in ids]
            choice["logprobs"] = {"content": content}
        if self.token_ids and body.get("return_token_ids"):
            choice["token_ids"] = ids
        return choice


def words(body: dict[str, Any]) -> int:
    """Count the words of a prompt."""
    return len(json.dumps(body["messages"]).split())


def answer(body: dict[str, Any], seed: int) -> str:
    """Return what the server says: it hangs on the messages and the seed alone."""
    digest = hashlib.sha256(json.dumps([body["messages"], seed]).encode()).digest()
    return TAPS[digest[0] % len(TAPS)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one piece
    chat: ChatServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        chat, digest = self.chat, hashlib.sha256(raw).hexdigest()
        with chat.lock:
            before = chat.counts[digest]
            chat.counts[digest] += 1
            if chat.keep_bodies:
                chat.bodies.append(body)
            chat.keys.add(self.headers.get("Authorization"))
            chat.open += 1
            chat.most_open = max(chat.most_open, chat.open)
        try:
            chat.seen(body)
            self._answer(body, before)
        finally:
            with chat.lock:
                chat.open -= 1

    def _answer(self, body: dict[str, Any], before: int) -> None:
        chat = self.chat
        fault = chat.fault(body, before)
        if fault == "cut":
            self.close_connection = True
        elif fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif fault is not None:
            self._send(*fault)
        elif chat.key is not None and self.headers.get("Authorization") != f"Bearer {chat.key}":
            said = {"error": {"message": f"wrong key: {self.headers.get('Authorization')}"}}
            self._send(401, {}, json.dumps(said))
        elif self.path != "/v1/chat/completions":
            self._send(404, {}, "no such page")
        elif chat.context is not None and words(body) > chat.context:
            text = f"This model's maximum context length is {chat.context} tokens. However, you requested {words(body)}"
            self._send(400, {}, json.dumps({"error": {"message": text, "code": 400}}))
        else:
            self._send(200, {}, json.dumps(chat.reply(body)))

    def _send(self, status: int, headers: dict[str, str], text: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        return  # a client that was killed, or gave up


@contextmanager
def serving(chat: ChatServer) -> Iterator[ChatServer]:
    """Serve on a free loopback port while the block runs."""
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"chat": chat}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
