"""Steps from JSON, in the vocabulary of whoever reads them: ours and marin-core's build the same DAG from one table.

A step is {"id", "name", "config": {"x": …, "y": …, "z": …}}; a config's values are

    {"$v": value}               versioned(value)            {"$dc": {field: value}}     a dataclass
    {"$out": [id, sub]}         output_path_of(step, sub)   {"$nonblocking": path}      a pseudo-dependency
    {"$cd": [id, [sub, …]]}     step / sub / …              {"$mirrored": [value, gb]}  mirrored(value, gb)
    {"$step": id}               the step itself             {"$tuple": [value, …]}
    {"$hard": path}             InputName.hardcoded(path)   {"$enum": name} {"$path": text} {"$timedelta": [d, s, us]}

and everything else is itself.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclass(frozen=True)
class Config:
    output_path: Any
    x: Any = None
    y: Any = None
    z: Any = None


def do_nothing(config: Config) -> None:
    """Never run."""


def build(table: Iterable[Mapping[str, Any]], words: SimpleNamespace) -> dict[str, Any]:
    """Id -> step. `words` has Step, versioned, output_path_of, this_output_path, hardcoded and mirrored."""
    steps: dict[str, Any] = {}
    for row in table:
        fields = {name: _value(value, steps, words) for name, value in row["config"].items()}
        config = Config(output_path=words.this_output_path(), **fields)
        steps[row["id"]] = words.Step(name=row["name"], fn=do_nothing, config=config)
    return steps


def _value(value: Any, steps: Mapping[str, Any], words: SimpleNamespace) -> Any:
    if isinstance(value, list):
        return [_value(item, steps, words) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not next(iter(value)).startswith("$"):
        return {key: _value(item, steps, words) for key, item in value.items()}
    [(tag, inner)] = value.items()
    return _TAGS[tag](inner, lambda other: _value(other, steps, words), steps, words)


def _dataclass(fields: Mapping[str, Any], inner: Any) -> Any:
    cls = dataclasses.make_dataclass("Nested", [(name, Any) for name in fields], frozen=True)
    return cls(**{name: inner(value) for name, value in fields.items()})


def _cd(step: Any, names: Iterable[str]) -> Any:
    for name in names:
        step = step / name
    return step


_TAGS: dict[str, Any] = {
    "$v": lambda v, inner, steps, words: words.versioned(inner(v)),
    "$out": lambda v, inner, steps, words: words.output_path_of(steps[v[0]], v[1]),
    "$cd": lambda v, inner, steps, words: _cd(steps[v[0]], v[1]),
    "$step": lambda v, inner, steps, words: steps[v],
    "$hard": lambda v, inner, steps, words: words.hardcoded(v),
    "$nonblocking": lambda v, inner, steps, words: inner(v).nonblocking(),
    "$mirrored": lambda v, inner, steps, words: words.mirrored(inner(v[0]), v[1]),
    "$dc": lambda v, inner, steps, words: _dataclass(v, inner),
    "$tuple": lambda v, inner, steps, words: tuple(inner(item) for item in v),
    "$enum": lambda v, inner, steps, words: Color[v],
    "$path": lambda v, inner, steps, words: Path(v),
    "$timedelta": lambda v, inner, steps, words: timedelta(*v),
}
