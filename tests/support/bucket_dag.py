"""One DAG in the words of whoever reads it: ours and marin-core's make equal steps of it, in any prefix.

    raw/numbers -> documents/squares -> tokenized/sum -> report/sum

A function writes `value.json`, which says who made it, and leaves a file below `<prefix>/calls` for each call. While a
step's gate (a local file) exists, its function waits, with `partial.txt` written.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

NAMES = ("raw/numbers", "documents/squares", "tokenized/sum", "report/sum")
PARTIAL = "partial.txt"


@dataclass(frozen=True)
class NumberConfig:
    output_path: Any
    number: Any
    input_path: Any = None
    gate: str = ""
    """Unversioned."""


def made_by_us(config: NumberConfig) -> dict[str, int]:
    return compute(config, "us")


def made_by_marin(config: NumberConfig) -> dict[str, int]:
    return compute(config, "marin")


def build(words: SimpleNamespace, gates: Mapping[str, str] = {}) -> dict[str, Any]:
    """Name -> step. `words` has Step, fn, versioned, output_path_of and this_output_path."""
    steps: dict[str, Any] = {}
    for number, name in enumerate(NAMES, start=1):
        above = words.output_path_of(steps[NAMES[number - 2]]) if steps else None
        config = NumberConfig(words.this_output_path(), words.versioned(number), above, gates.get(name, ""))
        steps[name] = words.Step(name=name, fn=words.fn, config=config)
    return steps


def compute(config: NumberConfig, by: str) -> dict[str, int]:
    """The step's number, and what its input has."""
    prefix, name = config.output_path.rsplit("/", 2)[0], "/".join(config.output_path.rsplit("/", 2)[1:])
    write(f"{prefix}/calls/{by}/{name}.{uuid.uuid4().hex}", "")
    if config.gate:
        write(f"{config.output_path}/{PARTIAL}", "half a thing")
        while os.path.exists(config.gate):
            time.sleep(0.02)
    found = config.number + (value_at(config.input_path)["value"] if config.input_path else 0)
    write(f"{config.output_path}/value.json", json.dumps({"value": found, "by": by}))
    return {"value": found}


def value_at(output_path: str) -> dict[str, Any]:
    """What a function wrote: `value`, and `by` whom."""
    fs, root = _filesystem(output_path)
    found: dict[str, Any] = json.loads(fs.cat_file(f"{root}/value.json"))
    return found


def calls(prefix: str, by: str) -> list[str]:
    """Names of the steps whose function was called, once for each call."""
    fs, root = _filesystem(f"{prefix}/calls/{by}")
    found = fs.find(root) if fs.exists(root) else []
    return sorted(path[len(root) + 1 :].rsplit("-", 1)[0] for path in found)


def write(path: str, text: str) -> None:
    fs, place = _filesystem(path)
    fs.makedirs(place.rsplit("/", 1)[0], exist_ok=True)
    fs.pipe_file(place, text.encode())


def _filesystem(path: str) -> tuple[Any, str]:
    import fsspec

    return fsspec.core.url_to_fs(path, use_listings_cache=False)  # type: ignore[no-any-return]
