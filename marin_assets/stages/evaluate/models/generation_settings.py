"""The settings of a request that generates, as lm-eval's tasks have them (generation_kwargs), and its seed.

They mean what they mean to lm-eval: `do_sample: false`, or neither it nor a temperature above 0, is greedy; with
`do_sample: true` and no temperature that is 1, as in transformers. Unlike the rest of this package it needs no lm-eval.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Any

from marin_assets.inference.completion_fields import SAMPLING, is_setting, sampling_of, shown
from marin_assets.inference.decoder import Prompt
from marin_assets.inference.generator import TextPrompt
from marin_assets.inference.jax_model import ModelError
from marin_resources.types.near_names import expected_one_of

TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names of the most tokens of an answer; of several the first counts."""
ONLY = {"num_beams": 1, "n": 1, "best_of": 1, "early_stopping": False}
"""Settings of which only this value is an answer here."""
OF_DRAWS = ("top_p", "top_k", "min_p")
"""Settings that change no greedy answer."""
SEEDS = 2**31
"""Seeds are below it, since servers take no larger ones."""


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    max_tokens: int
    stops: tuple[str, ...]
    temperature: float
    sampling: tuple[tuple[str, float], ...] = ()
    """Further settings that change the answer."""


def _are_texts(value: Any) -> bool:
    return all(isinstance(text, str) for text in ([value] if not isinstance(value, list | tuple) else value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 and value % 1 == 0


EXPECTED: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "until": ("a text or a list of texts", _are_texts),
    "do_sample": ("true or false", lambda value: isinstance(value, bool)),
    **dict.fromkeys(TOKENS, ("a whole number of tokens from 1 on", _is_count)),
    **{name: (setting.expected, partial(is_setting, name)) for name, setting in SAMPLING.items()},
    **{name: (f"{value!r}, which is all that answers here have", partial(eq, value)) for name, value in ONLY.items()},
}
"""The settings by name: what a value has to be, and whether it is."""


def settings_of(
    given: Mapping[str, Any], default_tokens: int, engine: str, served: Collection[str]
) -> GenerationSettings:
    """Read the settings of a task. `served` are the further settings of the draw that the engine has.

    Raises ModelError for a setting that is not known, that has no meaning, or that the engine does not have.
    """
    check_settings(given, "A task generates with")
    values = {name: value for name, value in given.items() if value is not None}
    temperature = temperature_of(values)
    without = {"temperature"} if temperature else {"temperature", *OF_DRAWS}
    drawn = {name: values[name] for name in SAMPLING if name in values and name not in without}
    sampling = sampling_of(drawn)
    for name, _ in sampling:
        if name not in served:
            raise ModelError(
                f"A task generates with {name}={shown(drawn[name])}, which {engine} does not have, expected some of "
                f"{['temperature', *served]}. Leave it out, or choose another engine."
            )
    until = values.get("until", [])
    return GenerationSettings(
        max_tokens=int(next((values[name] for name in TOKENS if name in values), default_tokens)),
        stops=tuple(stop for stop in ([until] if isinstance(until, str) else until) if stop),
        temperature=temperature,
        sampling=sampling,
    )


def check_settings(given: Mapping[str, Any], whose: str) -> None:
    """Raise ModelError for a setting that is not known or has no meaning. `whose` begins the sentence."""
    for name, value in given.items():
        if name not in EXPECTED:
            raise ModelError(f"{whose} {name!s:.80}={shown(value)}, {expected_one_of(name, EXPECTED, 'settings')}")
        expected, holds = EXPECTED[name]
        if value is not None and not holds(value):
            raise ModelError(f"{whose} {name}={shown(value)}, expected {expected}.")


def overriding(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that override those of tasks: the most tokens have the name that counts before a task's own."""
    others = {name: value for name, value in given.items() if name not in TOKENS}
    tokens = next((given[name] for name in TOKENS if given.get(name) is not None), None)
    return others if tokens is None else {**others, TOKENS[0]: tokens}


def temperature_of(given: Mapping[str, Any]) -> float:
    """The temperature of valid settings; 0 if they are greedy."""
    do_sample, temperature = given.get("do_sample"), given.get("temperature")
    if do_sample is False:
        return 0.0
    return float(temperature) if temperature is not None else 1.0 if do_sample else 0.0


def seeds_of(requests: Sequence[Any], seed: int) -> list[int]:
    """Return a seed for each of lm-eval's requests, by the evaluation's seed, the task, the question, and the number of
    the repeat: a repeated request is the same object several times."""
    repeats: Counter[int] = Counter()
    seeds = []
    for request in requests:
        text = f"{seed}|{request.task_name}|{request.doc_id}|{request.idx}|{repeats[id(request)]}"
        repeats[id(request)] += 1
        seeds.append(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % SEEDS)
    return seeds


def name_of(prompt: Prompt | TextPrompt) -> bytes:
    """The name of a prompt among kept answers. A greedy one has the same in every task."""
    return f"{prompt!r}{prompt.sampling or ''}".encode()


def until_stop(text: str, stops: tuple[str, ...]) -> str:
    """A text up to the first of these."""
    for stop in stops:
        text = text.split(stop)[0]
    return text
