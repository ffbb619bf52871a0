"""The check of all settings when a process starts: a mistake is one sentence, before anything has begun."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

from marin_resources.configuration.file import load_file, source_of
from marin_resources.configuration.settings import SettingError
from marin_resources.configuration.table import BY_NAME, SETTINGS, Kind, Setting

SCHEMES = {Kind.URL: ("http", "https"), Kind.POSTGRES: ("postgresql", "postgresql+psycopg2")}

_loaded = False


def load_settings(*, check: bool = True) -> None:
    """Set the variables of the file with settings, and check every one that is set. Raises SettingError.

    Without `check`, only the file itself is checked: `marin doctor` looks at the values.
    """
    global _loaded
    load_file()
    if check:
        check_settings()
    _loaded = True


def load_settings_or_exit() -> None:
    """Load the settings in a process that reports a mistake on stderr: a sentence, and exit code 2.

    It does nothing where the settings have been loaded.
    """
    if _loaded:
        return
    try:
        load_settings()
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None


def check_settings() -> None:
    """Check every setting that is set, without a look at a network. Raises SettingError for the first that is wrong."""
    for setting in SETTINGS:
        check_setting(setting)


def check_setting(setting: Setting) -> None:
    """Check one setting, if it is set. Raises SettingError: the sentence of what reads it, and the file that has it."""
    if not os.environ.get(setting.name):
        return
    try:
        _check_kind(setting, os.environ[setting.name])
        if setting.check:
            _function(setting.check)()
    except SettingError as error:
        raise _with_source(error, setting) from error


def _check_kind(setting: Setting, value: str) -> None:
    """Check the kind of a setting that nothing else checks before its use."""
    wrong = False
    if setting.kind is Kind.CHOICE and not setting.check:
        wrong = value not in setting.choices
    elif setting.kind in SCHEMES:
        wrong = not _is_address(value, SCHEMES[setting.kind])
    if wrong:
        shown = "not shown here, as it is a secret" if setting.secret else repr(value)
        raise SettingError(f"{setting.name} is {shown}, expected {setting.expected}.")


def _is_address(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        url = urlsplit(value)
        return url.scheme in schemes and bool(url.hostname)
    except ValueError:
        return False


def _function(name: str) -> Callable[[], object]:
    module, _, function = name.partition(":")
    function_object: Callable[[], object] = getattr(importlib.import_module(module), function)
    return function_object


def _with_source(error: SettingError, setting: Setting) -> SettingError:
    """Name the file that has the value. A check may be of several variables; its sentence names the wrong one."""
    named = [BY_NAME[name] for name in re.findall(r"[A-Z]+_[A-Z_]+", str(error)) if name in BY_NAME] or [setting]
    source = source_of(named[0].name)
    if source in (None, "environment"):
        return error
    return SettingError(f"{error} It is {named[0].key} in {source!r}.")
