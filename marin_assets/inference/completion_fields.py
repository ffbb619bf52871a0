"""The fields of a request of OpenAI's completions, as both servers here read them. It needs Python alone.

In:  the JSON object of a request.   Out: its settings; a request with another field, or with a value that would not be
     served as it is, is refused.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_TOKENS = 16
"""OpenAI's default."""
COMMON = frozenset({"model", "max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "stop_token_ids", "user"})
COMPLETIONS = COMMON | {"prompt", "echo", "logprobs", "return_tokens_as_token_ids"}
"""Fields of /v1/completions."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "stream": (False,),
    "min_p": (0, 0.0),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "suffix": ("",),
    "logit_bias": ({},),
}
"""Fields of which only these values are served: others would change the answer."""
MOST_SEED = 2**63
HOTTEST, MOST_TOP_K = 100, 2**31 - 1
SHOWN = 80
"""Characters of a value in an error."""


class FieldError(ValueError):
    """A request cannot be served. The message is a sentence with the field."""


@dataclass(frozen=True)
class Setting:
    """A number that decides how tokens are drawn."""

    expected: str
    holds: Callable[[float], bool]
    neutral: tuple[float, ...] = ()
    """Values that leave the draw as it is."""


SAMPLING: Mapping[str, Setting] = {
    "temperature": Setting(f"a number from 0 to {HOTTEST}", lambda value: 0 <= value <= HOTTEST),
    "top_p": Setting("a number above 0 and at most 1", lambda value: 0 < value <= 1, (1,)),
    "top_k": Setting(
        f"a whole number up to {MOST_TOP_K}, of which 0 and -1 are all tokens",
        lambda value: -1 <= value <= MOST_TOP_K and value % 1 == 0,
        (0, -1),
    ),
    "min_p": Setting("a number from 0 to 1", lambda value: 0 <= value <= 1, (0,)),
    "repetition_penalty": Setting("a number above 0", lambda value: value > 0, (1,)),
    "presence_penalty": Setting("a number from -2 to 2", lambda value: -2 <= value <= 2, (0,)),
    "frequency_penalty": Setting("a number from -2 to 2", lambda value: -2 <= value <= 2, (0,)),
}
"""Settings of the draw by their names in OpenAI's API and vLLM's. The servers here have the first three."""
SERVED = ("top_p", "top_k")


@dataclass(frozen=True, kw_only=True)
class CompletionFields:
    max_tokens: int
    temperature: float
    seed: int
    """Random where the request has none: two samples of one request differ."""
    stops: tuple[str, ...]
    stop_ids: tuple[int, ...]
    echo: bool
    logprobs: bool
    sampling: tuple[tuple[str, float], ...] = ()
    """The settings of SERVED that change the draw."""

    @property
    def generates(self) -> bool:
        """Whether the answer has more than the echoed prompt."""
        return self.max_tokens > 0 or not self.echo


def read_fields(
    body: Any, model: str, default_tokens: int = DEFAULT_TOKENS, fields: Collection[str] = COMPLETIONS
) -> CompletionFields:
    """Read the settings of a request for the model of this name. `fields` are those that the endpoint has.

    Raises FieldError.
    """
    if not isinstance(body, dict):
        raise FieldError(f"The request is {shown(body)}, expected a JSON object.")
    if body.get("model") not in (None, model):
        raise FieldError(f"The model {shown(body['model'])} is not served here, expected {model!r}.")
    for name, value in body.items():
        if name in NEUTRAL and not _is_neutral(name, value):
            raise FieldError(f"{name} is {shown(value)}, and this server has {NEUTRAL[name][0]!r} only. Leave it out.")
        if name not in NEUTRAL and name not in fields:
            raise FieldError(f"The field {shown(name)} is not served here, expected some of {sorted(fields)}.")
    temperature = 1.0 if body.get("temperature") is None else number_of("temperature", body["temperature"])
    max_tokens = _whole(body, "max_tokens", default_tokens)
    if max_tokens < 0:
        raise FieldError(f"max_tokens is {shown(max_tokens)}, expected at least 0.")
    seed = _whole(body, "seed", secrets.randbelow(MOST_SEED))
    return CompletionFields(
        max_tokens=max_tokens,
        temperature=float(temperature),
        sampling=sampling_of({name: body[name] for name in SERVED if body.get(name) is not None}),
        seed=seed % MOST_SEED,
        stops=_stops(body.get("stop")),
        stop_ids=_tokens(body.get("stop_token_ids")),
        echo=_flag(body, "echo"),
        logprobs=_logprobs(body.get("logprobs")),
    )


def number_of(name: str, value: Any) -> float:
    """A setting of the draw. Raises FieldError for one without a meaning."""
    if not is_setting(name, value):
        raise FieldError(f"{name} is {shown(value)}, expected {SAMPLING[name].expected}.")
    return float(value) if value % 1 else int(value)


def is_setting(name: str, value: Any) -> bool:
    """Whether the value of a setting of the draw has a meaning."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < math.inf and SAMPLING[name].holds(value)


def sampling_of(given: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The settings that change the draw, by name. Raises FieldError for one without a meaning."""
    numbers = {name: number_of(name, value) for name, value in sorted(given.items())}
    return tuple((name, number) for name, number in numbers.items() if number not in SAMPLING[name].neutral)


def shown(value: Any) -> str:
    """The beginning of a value, for an error."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**SHOWN else f"of {value.bit_length()} bits"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _is_neutral(name: str, value: Any) -> bool:
    return value is None or any(value == neutral and type(value) is type(neutral) for neutral in NEUTRAL[name])


def _whole(body: Mapping[str, Any], name: str, default: int) -> int:
    number = body.get(name)
    if number is None:
        return default
    if isinstance(number, float) and number.is_integer():
        return int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise FieldError(f"{name} is {shown(number)}, expected a whole number.")
    return number


def _stops(stop: Any) -> tuple[str, ...]:
    stops = [stop] if isinstance(stop, str) else [] if stop is None else stop
    if not isinstance(stops, list) or not all(isinstance(text, str) and text for text in stops):
        raise FieldError(f"stop is {shown(stop)}, expected a text or a list of texts, none of them empty.")
    return tuple(stops)


def _tokens(ids: Any) -> tuple[int, ...]:
    if ids is None:
        return ()
    if not isinstance(ids, list) or not all(isinstance(token, int) and not isinstance(token, bool) for token in ids):
        raise FieldError(f"stop_token_ids is {shown(ids)}, expected a list of whole numbers.")
    return tuple(ids)


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise FieldError(f"{name} is {shown(value)}, expected true or false.")
    return bool(value)


def _logprobs(value: Any) -> bool:
    """Whether log-probabilities are in the answer: 0 and 1 both give those of the tokens and of the likeliest."""
    if value is None or value is False:
        return False
    if value is True or not isinstance(value, int) or value not in (0, 1):
        raise FieldError(f"logprobs is {shown(value)}, expected 0 or 1: of a token's rivals the likeliest is given.")
    return True
