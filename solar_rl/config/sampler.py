"""The ``sampler`` block: who answers, one model a kind of sampler."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from solar_rl.config.base import SPEED_ONLY, Config

FORMS = (
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
)
"""Fields of a call by which servers hold answers to a form: OpenAI's, vLLM's new and old ones, llama.cpp's."""


class AnySampler(Config):
    """What every sampler has."""

    n: int = Field(default=8, ge=1, le=64)
    """N, candidates a step. The paper: 8. At most 64, so that neighbouring seeds never meet."""
    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature. The paper: 1.0. 0 is greedy, for evaluation: n must be 1, log-probs are those at 1."""
    adaptive: bool = False
    """Draw one candidate a step, and the other n - 1 only where that one is not valid (docs/method.md,
    section 4b): groups have 1 or n members, for the credits step_local and atomic. [ours]"""

    @model_validator(mode="after")
    def _greedy_alone(self) -> Self:
        if self.temperature == 0 and self.n > 1:
            raise ValueError(f"temperature 0 gives the same answer {self.n} times: set n to 1")
        return self

    @property
    def greedy(self) -> bool:
        """Tell whether the likeliest token is taken at every place."""
        return self.temperature == 0


class ScriptedSampler(AnySampler):
    """A noisy expert: it writes the recorded action, or a seeded mistake of a named kind."""

    type: Literal["scripted"] = "scripted"
    error_rate: float = Field(default=0.3, ge=0, le=1)
    """Chance of a mistake at a step."""
    error_rates: dict[str, float] = {}
    """The same by action type of the label, where it differs."""
    errors: dict[str, float] = {
        "near_miss": 3.0,
        "far_miss": 3.0,
        "wrong_type": 2.0,
        "wrong_direction": 2.0,
        "wrong_text": 2.0,
        "unparsable": 1.0,
    }
    """Weight of each kind of mistake; kinds that an action type can't make are left out."""
    policy: str | None = None
    """Folder of a local model that gives token ids and log-probs of the scripted answers, so that this
    very model can be trained on them. Default: UTF-8 bytes as token ids, the script's own log-probs."""
    batch_size: int = Field(default=8, ge=1, json_schema_extra=SPEED_ONLY)
    """Answers a forward pass of the policy."""


class _Model(AnySampler):
    """What every sampler that runs a model here has."""

    model: str
    """Folder of the model and its processor or tokenizer, or an id on the Hub."""
    revision: str | None = None
    """Revision, where the model comes from the Hub."""
    max_new_tokens: int = Field(default=128, ge=1)
    """Longest answer in tokens."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """A longer prompt loses its oldest actions until it fits; counted in history_dropped (default: what the
    model's context holds beside the longest answer)."""
    trust_remote_code: bool = False
    """Run code that comes with the model. Only for repositories that you trust."""


class TransformersSampler(_Model):
    """Any local causal or vision-language model through transformers."""

    type: Literal["transformers"] = "transformers"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the weights; float32 repeats exactly on a CPU."""
    device: str = Field(default="auto", json_schema_extra=SPEED_ONLY)
    """auto, cpu, cuda, cuda:1, ..."""
    batch_size: int = Field(default=8, ge=1, json_schema_extra=SPEED_ONLY)
    """Candidates that are generated side by side."""


class VllmSampler(_Model):
    """A local model through vLLM in this process's own engine."""

    type: Literal["vllm"] = "vllm"
    dtype: Literal["bfloat16", "float32", "float16"] = "bfloat16"
    """Precision of the weights; float32 on a CPU where exact repeats are asked for."""
    stop_tokens: tuple[str, ...] = ()
    """Tokens that end an answer beside the model's own."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share one copy of the model."""
    data_parallel: int | None = Field(default=None, ge=1, json_schema_extra=SPEED_ONLY)
    """Copies of the model side by side (default: as many as the visible GPUs hold)."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Prompt and answer together, in tokens (default: the model's own)."""
    gpu_memory: float = Field(default=0.9, gt=0, le=1, json_schema_extra=SPEED_ONLY)
    """Share of a GPU's memory that the engine takes."""
    enforce_eager: bool = Field(default=False, json_schema_extra=SPEED_ONLY)
    """Don't capture CUDA graphs: starts sooner, runs slower."""
    in_flight: int = Field(default=256, ge=1, json_schema_extra=SPEED_ONLY)
    """Steps that are put to the engine at once, each with its n candidates."""


class OpenAISampler(AnySampler):
    """Any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, or a hosted one."""

    type: Literal["openai"] = "openai"
    model: str
    """Name of the model as the server knows it."""
    endpoints: tuple[str, ...] = Field(default=("http://127.0.0.1:8000/v1",), json_schema_extra=SPEED_ONLY)
    """Base addresses of servers of the same model; each takes what the others have no room for. They are no
    part of the dataset: another checkpoint needs another ``model``."""
    key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; the key itself is never stored."""
    max_new_tokens: int = Field(default=128, ge=1)
    """Longest answer in tokens."""
    stop: tuple[str, ...] = ()
    """Texts that end an answer."""
    ask_n: bool = True
    """Ask for all candidates of a step in one call. A server that gives fewer is asked again for the rest."""
    logprobs: bool = True
    """Ask for log-probs; candidates of a server that gives none have null there."""
    token_ids: bool = True
    """Ask for token ids, as vLLM gives them; null where the server gives none."""
    seeded: bool = True
    """Send a seed with each call."""
    seed_bits: int = Field(default=63, ge=16, le=63)
    """Bits of the seed that are sent, the low ones: 31 for servers that read no more, or read it as a float. [ours]"""
    extra_body: dict[str, Any] = {}
    """More fields of every call, such as {"top_k": -1}. One that holds answers to a form, such as response_format,
    needs ``logprobs`` false: what a server then gives are not the model's own."""
    in_flight: int = Field(default=64, ge=1, json_schema_extra=SPEED_ONLY)
    """Calls at once, all servers together."""
    timeout: float = Field(default=600.0, gt=0, json_schema_extra=SPEED_ONLY)
    """Seconds until a call counts as lost."""
    retries: int = Field(default=6, ge=0, json_schema_extra=SPEED_ONLY)
    """Times that a call which failed for a passing reason is made again, after a growing wait."""
    prompt_price: float = Field(default=0.0, ge=0, json_schema_extra=SPEED_ONLY)
    """Price of a million prompt tokens, for the cost that is printed."""
    completion_price: float = Field(default=0.0, ge=0, json_schema_extra=SPEED_ONLY)
    """Price of a million tokens of answers."""

    @model_validator(mode="after")
    def _no_log_probs_of_a_form(self) -> Self:
        forms = [name for name in FORMS if name in self.extra_body]
        if forms and self.logprobs:
            raise ValueError(
                f"extra_body.{forms[0]} lets only some tokens be drawn, so log-probs would not be the model's: "
                "set logprobs to false"
            )
        return self

    @field_validator("endpoints", mode="before")
    @classmethod
    def _one_endpoint(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("endpoints")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("at least one address is needed")
        for each in value:
            parts = urlsplit(each)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("an address looks like http://127.0.0.1:8000/v1")
            if parts.username or parts.password or parts.query:
                raise ValueError("keep keys out of the address: key_env names the variable that holds one")
        return value


class RecordedSampler(AnySampler):
    """Answers that were sampled elsewhere, by episode, step and candidate."""

    type: Literal["recorded"] = "recorded"
    path: str
    """JSONL or parquet with episode_id, step_index, candidate_index, completion and, if known,
    token_ids, sampling_logprobs, seed, sampler_id."""


Sampler = Annotated[
    ScriptedSampler | TransformersSampler | VllmSampler | OpenAISampler | RecordedSampler,
    Field(discriminator="type"),
]
SAMPLER_TYPES = ("scripted", "transformers", "vllm", "openai", "recorded")
"""Value of ``sampler.type`` for each."""
