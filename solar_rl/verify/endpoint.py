"""A model behind an OpenAI-compatible endpoint as a verifier: the only file here that speaks HTTP.

Each case is one chat completion at temperature 0: goal, instruction, the recorded action as a hint, the
candidate's action and, where there is one, the screenshot. The answer must hold a JSON object with ``score``
from 0 to 1. What the model doesn't answer, or answers in another form, stays unscored. The key is read from
the environment when it is needed, and never stored, printed or put into an error.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from solar_rl.columns import action_of
from solar_rl.errors import InputError, ParseError
from solar_rl.formats.reading import first_object, number

if TYPE_CHECKING:
    import httpx2

Row = Mapping[str, Any]
RETRIED = (408, 409, 429, 500, 502, 503, 504)
PROMPT = """You judge one step of an agent that operates a device for a user.
You are told the goal, the action that an expert took at this point, and the action that the agent proposes.
Would the proposed action bring the user as far as the expert's? Another way to the same end is right; a tap on
another element, another text, another app or another direction is wrong.
Coordinates are in percent of the screen from its top left corner. A scroll's direction is the one whose content
comes into view.
Answer with one JSON object and nothing else: {"score": the probability from 0 to 1 that it is right}"""


@dataclass(frozen=True)
class EndpointVerifier:
    """Asks a model about each candidate.

    Args:
        url: Base address that ends in /v1, such as http://localhost:8000/v1.
        model: Name of the model at the endpoint.
        threshold: A candidate is valid from this score on.
        key_variable: Environment variable that holds the key; unset: no key is sent.
        concurrency: Requests at a time.
        retries: Further attempts after a timeout, a lost connection or a status of ``RETRIED``.
        timeout: Seconds for one attempt.
        images: Send the screenshot.
        prompt: System prompt.
        pause: Waits for so many seconds; tests need not.
    """

    url: str
    model: str
    threshold: float = 0.5
    key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 8
    retries: int = 4
    timeout: float = 60.0
    images: bool = True
    prompt: str = PROMPT
    pause: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __call__(self, steps: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
        """Score candidates; the same action at the same step is asked about once.

        Raises:
            InputError: The endpoint refuses the request (its address, key or model), or can't be reached.
        """
        import httpx2

        cases = candidates.join(steps, on=["episode_id", "step_index"], how="left", maintain_order="left")
        asked: dict[str, Row] = {}
        keys = []
        for row in cases.iter_rows(named=True):
            action = action_of(row, "pred_")
            key = json.dumps([row["episode_id"], row["step_index"], action.describe() if action else None])
            keys.append(key)
            if action is not None:
                asked.setdefault(key, row)
        limits = httpx2.Limits(max_connections=self.concurrency)
        with (
            httpx2.Client(timeout=self.timeout, headers=self._headers(), limits=limits) as client,
            ThreadPoolExecutor(self.concurrency) as pool,
        ):
            answers = dict(
                zip(asked, pool.map(lambda row: self._judge(client, row), asked.values()), strict=True)
            )
        return pl.DataFrame([answers.get(key, _UNPARSED) for key in keys], schema=_SCHEMA)

    def _headers(self) -> dict[str, str]:
        key = os.environ.get(self.key_variable)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _judge(self, client: httpx2.Client, row: Row) -> Row:
        text = self._ask(client, row)
        if text is None:
            return _unscored("verifier_no_answer")
        try:
            value = number(first_object(text).get("score"), "score")
        except ParseError:
            return _unscored("verifier_unreadable")
        if not 0 <= value <= 1:
            return _unscored("verifier_unreadable")
        valid = value >= self.threshold
        reason = None if valid else "verifier_refused"
        return {
            "raw_score": value,
            "valid": valid,
            "rule": f"verifier {self.model}",
            "failure_reason": reason,
        }

    def _ask(self, client: httpx2.Client, row: Row) -> str | None:
        """Return the model's answer, None when every attempt was in vain."""
        import httpx2

        body = {"model": self.model, "temperature": 0, "messages": self.messages(row)}
        for attempt in range(self.retries + 1):
            if attempt:
                self.pause(min(2.0 ** (attempt - 1), 30.0))
            try:
                response = client.post(f"{self.url.rstrip('/')}/chat/completions", json=body)
            except httpx2.ConnectError as error:
                if attempt == self.retries:
                    raise InputError(f"can't be reached: {error}", where=self.url) from None
            except httpx2.TransportError:
                continue
            else:
                if response.status_code == 200:
                    return _content(response)
                if response.status_code not in RETRIED:
                    hint = f"check the address, --model and the key in {self.key_variable}"
                    raise InputError(f"refuses with status {response.status_code}", where=self.url, hint=hint)
        return None

    def messages(self, row: Row) -> list[dict[str, Any]]:
        """Return the chat messages about one candidate: a row of candidates joined with its step."""
        expert, proposed = action_of(row), action_of(row, "pred_")
        lines = [f"Goal: {row['goal']}"]
        if row.get("instruction"):
            lines.append(f"This step: {row['instruction']}")
        lines.append(f"Expert: {expert.describe() if expert else 'not known'}")
        lines.append(f"Proposed: {proposed.describe() if proposed else 'nothing readable'}")
        content: list[dict[str, Any]] = [{"type": "text", "text": "\n".join(lines)}]
        if self.images and row.get("screenshot"):
            kind = "png" if row["screenshot"].startswith(b"\x89PNG") else "jpeg"
            data = base64.b64encode(row["screenshot"]).decode()
            content.append({"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{data}"}})
        return [{"role": "system", "content": self.prompt}, {"role": "user", "content": content}]


_SCHEMA = {
    "raw_score": pl.Float64,
    "valid": pl.Boolean,
    "unscored_reason": pl.String,
    "rule": pl.String,
    "failure_reason": pl.String,
}
_UNPARSED: Row = {"raw_score": 0.0, "valid": False, "rule": "parse", "failure_reason": "parse_error"}


def _unscored(reason: str) -> Row:
    return {"unscored_reason": reason}


def _content(response: httpx2.Response) -> str:
    """Return the text of a chat completion, empty where it has none."""
    try:
        content = response.json()["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        return ""
    return content if isinstance(content, str) else ""
