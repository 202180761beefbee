"""Sample from any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, or a hosted one.

Calls go out side by side, a bounded number at once, each to the server that has the fewest at work. A call
that fails for a passing reason (a cut line, 408, 429, 5xx) is made again after a growing wait, or after
the one that the server asks for. Screenshots travel as data URIs, resized beforehand, so that a server
that resizes by the same rule has nothing left to do.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import stamina
from PIL import Image

from solar_rl.config import OpenAISampler, PromptConfig
from solar_rl.errors import InputError
from solar_rl.formats.resize import smart_resize
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.concurrent import Loop, in_order

if TYPE_CHECKING:
    import httpx2

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which the same call may well succeed."""


class _Passing(Exception):
    """A call failed for a reason that may pass.

    Args:
        what: What happened.
        after: Seconds that the server asks to wait, if it does.
    """

    def __init__(self, what: str, after: float | None = None) -> None:
        super().__init__(what)
        self.after = after


@dataclass
class Usage:
    """What was sent and received so far."""

    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def cost(self, config: OpenAISampler) -> float:
        """Return the price of the tokens in the currency of the config's prices."""
        prompt, answers = config.prompt_price, config.completion_price
        return (self.prompt_tokens * prompt + self.completion_tokens * answers) / 1e6


class OpenAI:
    """Answers requests by calls to servers of one model.

    Token ids and log-probs are null where the server gives none, which ``stats NAME sampling`` counts. The
    key is read from the environment when a call is made and never stored.

    Args:
        config: Servers, model and limits.
        prompt: Holds the pixel limits.
    """

    def __init__(self, config: OpenAISampler, prompt: PromptConfig) -> None:
        self._config, self._prompt = config, prompt
        self._busy = dict.fromkeys((url.rstrip("/") for url in config.endpoints), 0)
        self._loop = Loop()
        self._client: httpx2.AsyncClient = self._loop.run(_client(config))
        self.usage = Usage()
        self.sampler_id = f"openai/{config.model}/{config.digest()[:12]}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request.

        Raises:
            InputError: A server refuses a call, or every attempt failed.
        """
        return in_order(self._loop, requests, self._answer, self._config.in_flight)

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    async def _answer(self, request: Request) -> list[Completion]:
        messages = self._messages(request)
        found: list[Completion] = []
        while len(found) < request.n:  # a server may give fewer than it was asked for
            wanted = request.n - len(found) if self._config.ask_n else 1
            seed = request.seed + len(found)
            choices = await self._ask(self._body(messages, wanted, seed), request)
            found += (_completion(choice, seed + k) for k, choice in enumerate(choices[:wanted]))
        return found

    def _body(self, messages: list[dict[str, Any]], n: int, seed: int) -> dict[str, Any]:
        config = self._config
        body: dict[str, Any] = {
            "model": config.model,
            "messages": messages,
            "n": n,
            "temperature": config.temperature,
            "top_p": 1.0,
            "max_tokens": config.max_new_tokens,
        }
        body |= {"seed": seed} if config.seeded else {}
        body |= {"logprobs": True} if config.logprobs else {}
        body |= {"return_token_ids": True} if config.token_ids else {}
        body |= {"stop": list(config.stop)} if config.stop else {}
        return body | config.extra_body

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        """Put the screenshots where the messages hold their places."""
        urls = iter([self._data_uri(image) for image in request.images])
        return [
            {"role": message["role"], "content": [_part(part, urls) for part in message["content"]]}
            for message in request.messages
        ]

    def _data_uri(self, data: bytes) -> str:
        picture = Image.open(io.BytesIO(data))
        limits = {"min_pixels": self._prompt.min_pixels, "max_pixels": self._prompt.max_pixels}
        size = smart_resize(*picture.size, **limits)
        kind = (picture.format or "PNG").lower()
        if size != picture.size:
            out = io.BytesIO()
            picture.convert("RGB").resize(size, Image.Resampling.BICUBIC).save(out, "PNG", compress_level=1)
            data, kind = out.getvalue(), "png"
        return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"

    async def _ask(self, body: dict[str, Any], request: Request) -> Sequence[dict[str, Any]]:
        attempts = stamina.retry_context(
            on=_backoff, attempts=self._config.retries + 1, timeout=None, wait_initial=0.5, wait_max=60.0
        )
        try:
            async for attempt in attempts:
                with attempt:
                    self.usage.retries += attempt.num > 1
                    return await self._call(body, request)
        except _Passing as error:
            raise InputError(
                f"{self._config.retries + 1} calls in a row failed, the last: {error}",
                where=_place(request),
                hint="is the server up? run the same command again and it goes on",
            ) from None
        raise AssertionError("stamina either returns or raises")

    async def _call(self, body: dict[str, Any], request: Request) -> Sequence[dict[str, Any]]:
        import httpx2

        key = os.environ.get(self._config.key_env)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with self._least_busy() as url:
            try:
                response = await self._client.post(f"{url}/chat/completions", json=body, headers=headers)
            except httpx2.TransportError as error:
                raise _Passing(f"{url}: {type(error).__name__} {error}".rstrip()) from error
        if response.status_code in PASSING:
            raise _Passing(f"{url} answers {response.status_code}", _asked_wait(response))
        if response.status_code != 200:
            raise InputError(
                f"the server refuses with status {response.status_code}: {_said(response)}",
                where=f"{url}, {_place(request)}",
                hint=f"check sampler.endpoints, sampler.model and the key in {self._config.key_env}",
            )
        return self._choices(response, url)

    def _choices(self, response: httpx2.Response, url: str) -> Sequence[dict[str, Any]]:
        try:
            data = response.json()
            choices = data["choices"]
            whole = bool(choices) and all("message" in choice for choice in choices)
        except (ValueError, LookupError, TypeError) as error:
            raise _Passing(f"{url} answers with no chat completion") from error
        if not whole:
            raise _Passing(f"{url} answers with no choice")
        usage = data.get("usage") or {}
        self.usage.calls += 1
        self.usage.prompt_tokens += usage.get("prompt_tokens") or 0
        self.usage.completion_tokens += usage.get("completion_tokens") or 0
        return sorted(choices, key=lambda choice: choice.get("index", 0))

    @contextmanager
    def _least_busy(self) -> Iterator[str]:
        url = min(self._busy, key=lambda each: self._busy[each])
        self._busy[url] += 1
        try:
            yield url
        finally:
            self._busy[url] -= 1


async def _client(config: OpenAISampler) -> httpx2.AsyncClient:
    import httpx2

    limits = httpx2.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight)
    return httpx2.AsyncClient(timeout=config.timeout, limits=limits)


def _backoff(error: Exception) -> bool | float:
    """Say whether a call is made again: after the wait that the server asks for, else a growing one."""
    if not isinstance(error, _Passing):
        return False
    return True if error.after is None else error.after


def _asked_wait(response: httpx2.Response) -> float | None:
    """Read Retry-After in seconds; its form as a date is left to the growing wait."""
    text = response.headers.get("retry-after", "")
    return min(float(text), 300.0) if text.replace(".", "", 1).isdigit() else None


def _said(response: httpx2.Response) -> str:
    try:
        message = response.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = response.text
    return " ".join(str(message).split())[:300]


def _place(request: Request) -> str:
    return f"episode {request.episode.episode_id}, step {request.step.step_index}"


def _part(part: dict[str, Any], urls: Iterator[str]) -> dict[str, Any]:
    return part if part["type"] == "text" else {"type": "image_url", "image_url": {"url": next(urls)}}


def _completion(choice: dict[str, Any], seed: int) -> Completion:
    content = (choice.get("logprobs") or {}).get("content")
    logprobs = tuple(float(token["logprob"]) for token in content) if content else None
    ids = choice.get("token_ids")
    if ids is not None and logprobs is not None and len(ids) != len(logprobs):
        logprobs = None  # not of these tokens: worth nothing
    reason = choice.get("finish_reason")
    return Completion(
        choice["message"].get("content") or "",
        seed,
        None if ids is None else tuple(ids),
        logprobs,
        reason if reason in ("stop", "length") else None,
    )
