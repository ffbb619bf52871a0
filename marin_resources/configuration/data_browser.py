"""The data browser of a deployment: its address, and what it shows beside the prefix of outputs.

MARIN_BROWSE_URL        its address, without a path      default: none
MARIN_BROWSE_PREFIXES   prefixes, between commas         default: none
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from marin_resources.configuration.settings import SettingError, normalize_prefix

ADDRESS, PREFIXES = "MARIN_BROWSE_URL", "MARIN_BROWSE_PREFIXES"


def browser_address() -> str:
    """The address of the data browser, without a slash at its end; empty if none is set.

    Raises SettingError for one with a path: its pages are at the root of a host name of their own.
    """
    value = os.environ.get(ADDRESS, "").strip()
    url = urlsplit(value)
    if url.path.strip("/") or url.query or url.fragment or url.username is not None:
        raise SettingError(
            f"{ADDRESS} is {value!r}, expected a scheme and a host name alone, such as https://browse.example.org."
        )
    return value.rstrip("/")


def browser_host() -> str:
    """The host name of that address; empty if none is set."""
    return urlsplit(browser_address()).hostname or ""


def further_prefixes() -> tuple[str, ...]:
    """The prefixes that are shown beside that of outputs. Raises SettingError for one that cannot be a prefix."""
    value = os.environ.get(PREFIXES, "")
    try:
        return tuple(normalize_prefix(prefix) for prefix in value.split(",") if prefix.strip())
    except SettingError as error:
        raise SettingError(f"{PREFIXES} is {value!r}, expected prefixes between commas: {error}") from error
