"""A step holds no password: its config is stored beside the output, and shown by Dagster, plans and logs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from marin_assets.step.values import ConfigError, MirroredValue, PartitionName, Placeholder, StepMarker, VersionedValue

_URL = re.compile(r"\s*(?:\w+::)*[A-Za-z][A-Za-z0-9+.-]*://[^/\s@:]*:(?P<password>[^/\s@]+)@")
"""A URL with user and password, also behind the protocols that fsspec chains. A token as the user is not found."""


def refuse_passwords(config: Any, packages: tuple[str, ...], step: str) -> None:
    """Raise ConfigError for a URL with a password in a step's config, or in a requirement such as "a @ https://…"."""
    requirements = ((f"packages[{i}]", each.partition("@")[2]) for i, each in enumerate(packages))
    for place, text in (*_texts(config, "config"), *requirements):
        if found := _URL.match(text):
            shown = text.replace(found["password"], "***")
            raise ConfigError(
                f"Step {step!r} has a password in {place}, {shown!r}, which would be stored beside its output and be "
                "shown in Dagster. Remove it: https finds user and password of a host in ~/.netrc of the machine that "
                "runs the step, and a function finds a secret in a variable that the step names in env."
            )


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """The texts of a value with their places. Takes no recursion, as the value may be nested too deeply."""
    left = [(place, value)]
    while left:
        place, value = left.pop()
        if value is None or type(value) in (int, float, bool):  # most values
            continue
        if isinstance(value, str | PurePath):
            yield place, str(value)
        elif isinstance(value, PartitionName):
            yield place, value.form
        elif isinstance(value, VersionedValue | MirroredValue):
            left.append((place, value.value))
        elif isinstance(value, Placeholder | StepMarker):
            continue
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            left += [(f"{place}.{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value)]
        elif isinstance(value, Mapping):
            left += [(f"{place}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            left += [(f"{place}[{i}]", item) for i, item in enumerate(value)]
