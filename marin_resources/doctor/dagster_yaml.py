"""The dagster.yaml: whether it can be read, whether its variables are set, and whether its database answers.

Dagster's own errors of these name neither the variable nor what to do.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources.doctor.postgres import addresses_in, why_no_connection

NAME = "dagster.yaml"
UNKNOWN = re.compile(r'unexpected config entry "(\w+)" at (?:the root|path (\S+?))\.')
INVALID = re.compile(r'at path (\S+?)\. Value "(.*?)" of type .* is not valid for expected type "(\w+)"')


def mistakes_in(home: str) -> Iterator[str]:
    """A sentence for each mistake that is found without Dagster. Connects to the database that is named."""
    path = os.path.join(home, NAME)
    settings: Any = {}
    if os.path.exists(path):
        try:
            settings = _read(path)
        except (OSError, ValueError) as error:
            yield f"{path!r} cannot be read ({error}). Correct the file."
            return
    if not isinstance(settings, Mapping):
        yield f"{path!r} holds a {type(settings).__name__}, expected a table of settings. Correct the file."
        return
    for name in dict.fromkeys(_variables_in(settings)):
        if not os.environ.get(name):
            yield f"{path!r} reads the variable {name}, which is not set. Set it, in the environment of all services."
    for address in addresses_in(settings, os.environ, path):
        if why := why_no_connection(address):
            yield why


def sentence_of(error: Exception, home: str) -> str:
    """Dagster's error about the settings, short."""
    path, text = os.path.join(home, NAME), " ".join(str(error).split())
    if unknown := UNKNOWN.search(text):
        near = difflib.get_close_matches(unknown[1], _known_keys(), n=1) if unknown[2] is None else []
        advice = f"Did you mean {near[0]!r}?" if near else "Remove it, or correct its name."
        return f"{path!r} has the key {unknown[1]!r}, which Dagster does not know. {advice}"
    if invalid := INVALID.search(text):
        place = invalid[1].removeprefix("root:").replace(":", ".")
        return f"{path!r} has {place} = {invalid[2]!r}, expected a value of the type {invalid[3]}."
    shown = text.partition(' Expected: "{')[0].removesuffix(".")
    return f"The instance at {home} cannot be opened ({type(error).__name__}: {shown}). Correct {path!r}."


def _read(path: str) -> Any:
    """Raises ValueError with one line."""
    import yaml

    with open(path, encoding="utf-8") as file:
        try:
            return yaml.safe_load(file) or {}
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
            raise ValueError(f"{where}{error.problem or error.context}") from None
        except yaml.YAMLError as error:  # a character that no YAML may have
            raise ValueError(" ".join(str(error).split())) from None


def _variables_in(settings: Any) -> Iterator[str]:
    """The names in `{env: NAME}`, at any depth."""
    if isinstance(settings, Mapping):
        if list(settings) == ["env"] and isinstance(settings["env"], str):
            yield settings["env"]
        settings = settings.values()
    elif not isinstance(settings, list):
        return
    for value in settings:
        yield from _variables_in(value)


def _known_keys() -> list[str]:
    from marin_resources.dagster_fixes.databases import instance_keys  # late, for its weight

    return instance_keys()
