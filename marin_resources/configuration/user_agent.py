"""The name of this deployment for servers of other people, in the form that Wikimedia requests: name/version
(contact)."""

from __future__ import annotations

import importlib.metadata
import os
import re
from functools import cache

from marin_resources.configuration.settings import DISTRIBUTION, SettingError

VARIABLE = "MARIN_CONTACT"
CONTACT = re.compile(r"https?://[^\s()<>\"]+\.[^\s()<>\"]+\Z|(?:mailto:)?[^\s()<>@\"]+@[^\s()<>@\"]+\.[a-zA-Z]{2,}\Z")
"""An address of a page or of mail, which stands between parentheses in a header."""


def user_agent() -> str:
    """The User-Agent of downloads: "marin-dagster/0.1.0 (you@example.org)". Raises SettingError."""
    contact = declared_contact()
    return f"{DISTRIBUTION}/{_version()}" + (f" ({contact})" if contact else "")


def declared_contact() -> str:
    """MARIN_CONTACT, "" without one. Raises SettingError for what is no address of a page or of mail."""
    contact = os.environ.get(VARIABLE, "").strip()
    if contact and not is_contact(contact):
        raise SettingError(
            f"{VARIABLE} is {contact!r}, expected an address of a page, 'https://…', or of mail, by which the owner of "
            "a server can reach you. Correct it, or unset it."
        )
    return contact


def is_contact(text: str) -> bool:
    return text.isascii() and CONTACT.match(text) is not None


@cache
def _version() -> str:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:  # code that was shipped to a cluster
        return "unknown"
