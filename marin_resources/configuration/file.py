"""The files with settings, in TOML: their keys become environment variables of this process and of all that it starts.

MARIN_CONFIG   the file; empty: none      default: marin.toml in DAGSTER_HOME, if it exists

A project of one's own has settings too, in the table [tool.marin] of its pyproject.toml. A key is the name of its
variable without "MARIN_", in small letters. A variable that is set is not changed: the environment comes before the
file, the file before the project's table, and that before the default.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import stat
import tomllib
from collections.abc import Mapping
from typing import Any

from marin_resources.configuration.own_project import FILE as PROJECT_FILE
from marin_resources.configuration.own_project import own_project
from marin_resources.configuration.settings import SettingError, dagster_home, normalize_prefix
from marin_resources.configuration.table import BY_KEY, Kind, Setting

VARIABLE = "MARIN_CONFIG"
DEFAULT_NAME = "marin.toml"
OTHER_USERS = stat.S_IRWXO

_set_by_us: dict[str, tuple[str, str]] = {}
"""Variable -> the value that a file has given it in this process, and that file."""


def load_file() -> None:
    """Set the variables of the file that are not set. Raises SettingError: one sentence with file, key and value.

    A later call, of the same file or another one, takes back what the earlier one has set.
    """
    for name, (value, _) in _set_by_us.items():
        if os.environ.get(name) == value:
            del os.environ[name]
    _set_by_us.clear()
    project = own_project()
    for path in (settings_path(), None if project is None else str(project / PROJECT_FILE)):
        for name, value in ({} if path is None else read_file(path)).items():
            if not os.environ.get(name):
                os.environ[name] = value
                _set_by_us[name] = (value, path or "")


def source_of(name: str) -> str | None:
    """The source of the value of a variable: the path of a file, "environment", or None if it is not set."""
    value = os.environ.get(name)
    if not value:
        return None
    set_by_us = _set_by_us.get(name)
    return set_by_us[1] if set_by_us is not None and set_by_us[0] == value else "environment"


def settings_path() -> str | None:
    """The file with settings; None without one. Raises SettingError if the one that is named does not exist."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        if named and not os.path.isfile(os.path.expanduser(named)):
            raise SettingError(f"{VARIABLE} is {named!r}, which is no file. Name a TOML file, or unset it.")
        return os.path.abspath(os.path.expanduser(named)) if named else None
    path = os.path.join(dagster_home(), DEFAULT_NAME)
    return path if os.path.isfile(path) else None


def read_file(path: str) -> dict[str, str]:
    """Variable -> value, as in the file, or in the table [tool.marin] of a pyproject.toml. Raises SettingError."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            fields = tomllib.load(file)
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are of ValueError
        raise SettingError(f"The settings in {path!r} cannot be read ({error}). Correct the file.") from error
    if os.path.basename(path) == PROJECT_FILE:
        tools = fields.get("tool")
        table = tools.get("marin") if isinstance(tools, dict) else None
        if not isinstance(table, dict):
            raise SettingError(f"{path!r} has no table [tool.marin] of settings. Add it, or name another file.")
        fields = table
    values = {}
    for key, value in fields.items():
        setting = BY_KEY.get(key)
        if setting is None:
            raise _unknown(path, key)
        if setting.secret and mode & OTHER_USERS:
            raise SettingError(
                f"{path!r} has {key}, a secret, and other users may read it (mode {stat.S_IMODE(mode):04o}). "
                f"Run: chmod 640 {path}"
            )
        text = _text(path, setting, value)
        if text:
            values[setting.name] = text
    return values


def _unknown(path: str, key: str) -> SettingError:
    near = difflib.get_close_matches(key.lower().removeprefix("marin_"), BY_KEY, n=1)
    if key == VARIABLE.removeprefix("MARIN_").lower():
        advice = f"Name the file in the environment, as {VARIABLE}."
    else:
        advice = (
            f"Did you mean {near[0]}?" if near else "Remove it; docs/reference/configuration.md lists all settings."
        )
    return SettingError(f"{path!r} has the key {key!r}, which is no setting. {advice}")


def _text(path: str, setting: Setting, value: Any) -> str:
    """The value as its variable has it. Raises SettingError for another kind of value."""
    text = _as_variable(setting, value)
    if text is None:
        shown = "of another kind" if setting.secret else repr(value)
        raise SettingError(f"{path!r} has {setting.key} = {shown}, expected {setting.expected}.")
    relative = setting.kind in (Kind.PATH, Kind.PLACE) and text and "://" not in text and text[0] not in "/~"
    place = os.path.join(os.path.dirname(path), text) if relative else text
    try:
        return normalize_prefix(place) if setting.kind is Kind.PLACE and text else place
    except SettingError as error:
        raise SettingError(f"{error} It is {setting.key} in {path!r}.") from error


def _as_variable(setting: Setting, value: Any) -> str | None:
    """None if a value of this kind cannot be one of the setting."""
    match setting.kind:
        case Kind.NUMBER:
            return _number(value)
        case Kind.FLAG:
            return ("1" if value else "") if isinstance(value, bool) else None
        case Kind.PAIRS if isinstance(value, dict):
            return _pairs(value)
        case Kind.NAMES if isinstance(value, list):
            return ",".join(value) if all(isinstance(name, str) for name in value) else None
        case Kind.NODES if isinstance(value, list):
            return json.dumps(value) if all(isinstance(node, dict) for node in value) else None
        case _:
            return value if isinstance(value, str) else None


def _number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return repr(value)


def _pairs(table: Mapping[str, Any]) -> str | None:
    """A table in the form of a variable: "name=value,name=value", and lists in it as "a+b"."""
    pairs = []
    for name, value in table.items():
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            text: str | None = "+".join(value)
        else:
            text = value if isinstance(value, str) else _number(value)
        if text is None or "," in name + text:
            return None
        pairs.append(f"{name}={text}")
    return ",".join(pairs)
