"""Sample from any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, or a hosted one.

Calls go out side by side, a bounded number at once, each to the server that has the fewest at work. A call
that fails for a passing reason (a cut line, 408, 429, 5xx, an answer that is none) is made again after a
growing wait, or after the one that the server asks for. Screenshots travel as data URIs, resized beforehand,
so that a server that resizes by the same rule has nothing left to do.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
import stamina
from PIL import Image

from solar_rl.config import OpenAISampler, PromptConfig
from solar_rl.errors import InputError
from solar_rl.formats.resize import smart_resize
from solar_rl.prompts import without_oldest
from solar_rl.sampling.again import Again, Passing
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.concurrent import Loop, in_order
from solar_rl.sampling.endpoints import Endpoints
from solar_rl.sampling.reply import Choice, asked_wait, read_reply, said, too_long
from solar_rl.sampling.usage import Usage

if TYPE_CHECKING:
    import httpx2

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes after which the same call may well succeed."""
_CONNECT_S = 30.0
"""Seconds after which a server that doesn't even take a connection counts as down."""
_FIELDS = {"return_token_ids": "token_ids", "logprobs": "logprobs", "seed": "seeded", "choice": "ask_n"}
"""What a server that refuses a call may say, and the setting that leaves that field out."""


class _TooLong(Exception):
    """The prompt doesn't fit into the server's context."""


class OpenAI:
    """Answers requests by calls to servers of one model.

    Token ids and log-probs are null where the server gives none, which ``stats NAME sampling`` counts. The
    key is read from the environment when a call is made and never stored. A prompt that is too long for the
    server is asked again without its oldest action, and so on until it fits; ``history_dropped`` counts them.

    Args:
        config: Servers, model and limits.
        prompt: Holds the pixel limits.
    """

    def __init__(self, config: OpenAISampler, prompt: PromptConfig) -> None:
        self._config, self._prompt = config, prompt
        self._endpoints = Endpoints(config.endpoints)
        self._again = Again()
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

    def summary(self) -> dict[str, Any]:
        """Return what was sent and received so far."""
        return self.usage.as_dict()

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    async def _answer(self, request: Request) -> list[Completion]:
        refusal = ""
        for dropped in range(request.shown + 1):
            try:
                found = await self._candidates(
                    without_oldest(request, dropped) if dropped else request, dropped
                )
            except _TooLong as error:
                refusal = str(error)
                continue
            self.usage.answered(found)
            return found
        raise InputError(
            f"the prompt is too long for the server even without any history: {refusal}",
            where=_place(request),
            hint="give the server a longer context (vLLM: --max-model-len), or lower sampler.max_new_tokens or "
            "prompt.max_pixels",
        )

    async def _candidates(self, request: Request, dropped: int) -> list[Completion]:
        # Decoding and resizing would hold up every other call, so it is done aside.
        messages = (
            await asyncio.to_thread(self._messages, request) if request.images else self._messages(request)
        )
        found: list[Completion] = []
        while len(found) < request.n:  # a server may give fewer than it was asked for
            wanted = request.n - len(found) if self._config.ask_n else 1
            seed = request.seed + len(found)
            choices = await self._ask(orjson.dumps(self._body(messages, wanted, seed)), request)
            found += (choice.completion(seed + k, dropped) for k, choice in enumerate(choices[:wanted]))
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
        body |= {"seed": seed & ((1 << config.seed_bits) - 1)} if config.seeded else {}
        body |= {"logprobs": True} if config.logprobs else {}
        body |= {"return_token_ids": True} if config.token_ids else {}
        body |= {"stop": list(config.stop)} if config.stop else {}
        return body | config.extra_body

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        """Put the screenshots where the messages hold their places; what has none is plain text."""
        urls = iter([self._data_uri(image) for image in request.images])
        return [
            {"role": message["role"], "content": _content(message["content"], urls)}
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

    async def _ask(self, body: bytes, request: Request) -> list[Choice]:
        attempts = stamina.retry_context(
            on=_backoff, attempts=self._config.retries + 1, timeout=None, wait_initial=0.5, wait_max=60.0
        )
        try:
            async for attempt in attempts:
                with attempt:
                    if attempt.num > 1:
                        self.usage.retries += 1
                    with self._again.told(attempt.next_wait, last=attempt.num > self._config.retries):
                        return await self._call(body, request)
        except Passing as error:
            raise InputError(
                f"{self._config.retries + 1} calls in a row failed, the last: {error}",
                where=_place(request),
                hint="is the server up? run the same command again and it goes on; a built dataset holds no "
                "addresses, so give --sampler.endpoints",
            ) from None
        raise AssertionError("stamina either returns or raises")

    async def _call(self, body: bytes, request: Request) -> list[Choice]:
        import httpx2

        key = os.environ.get(self._config.key_env)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        with self._endpoints.take() as url:
            try:
                async with asyncio.timeout(self._config.timeout):
                    response = await self._client.post(
                        f"{url}/chat/completions", content=body, headers=headers
                    )
            except (httpx2.RequestError, TimeoutError) as error:
                what = f": {type(error).__name__} {error}".rstrip()
                raise Passing(url, what, self._endpoints.failed(url)) from None
        if response.status_code in PASSING:
            wait = self._endpoints.failed(url, asked_wait(response))
            raise Passing(url, f" answers {response.status_code}: {said(response, key)}", wait)
        if response.status_code != 200:
            raise self._refusal(response.status_code, said(response, key), url, request)
        reply = read_reply(response.content)
        if reply is None:
            raise Passing(url, " answers with no chat completion", self._endpoints.failed(url))
        self._endpoints.works(url)
        self.usage.calls += 1
        if reply.usage is not None:
            self._count(reply.usage.prompt_tokens or 0, reply.usage.completion_tokens or 0)
        return reply.in_order()

    def _count(self, prompt: int, answers: int) -> None:
        self.usage.prompt_tokens += prompt
        self.usage.completion_tokens += answers
        self.usage.cost += (
            prompt * self._config.prompt_price + answers * self._config.completion_price
        ) / 1e6

    def _refusal(self, status: int, text: str, url: str, request: Request) -> Exception:
        if too_long(status, text):
            return _TooLong(text)
        fields = [setting for word, setting in _FIELDS.items() if word in text.lower()]
        hint = "check sampler.endpoints (most end in /v1) and sampler.model"
        if status in (401, 403):
            name = self._config.key_env
            hint = f"the key in {name} isn't taken" if os.environ.get(name) else f"put the key into {name}"
        elif fields:
            hint = f"this server may not know that field: set sampler.{fields[0]} to false"
        return InputError(
            f"the server refuses with status {status}: {text}", where=f"{url}, {_place(request)}", hint=hint
        )


async def _client(config: OpenAISampler) -> httpx2.AsyncClient:
    import httpx2

    limits = httpx2.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight)
    timeout = httpx2.Timeout(config.timeout, connect=min(config.timeout, _CONNECT_S))
    return httpx2.AsyncClient(timeout=timeout, limits=limits)


def _backoff(error: Exception) -> bool | float:
    """Say whether a call is made again: after the wait that is known to help, else a growing one."""
    if not isinstance(error, Passing):
        return False
    return True if error.after is None else error.after


def _place(request: Request) -> str:
    return f"episode {request.episode.episode_id}, step {request.step.step_index}"


def _content(parts: list[dict[str, Any]], urls: Iterator[str]) -> str | list[dict[str, Any]]:
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return [
        part if part["type"] == "text" else {"type": "image_url", "image_url": {"url": next(urls)}}
        for part in parts
    ]
