"""Downloads name the project, its version and a contact."""

from __future__ import annotations

import importlib.metadata

import pytest

from marin_resources.configuration import user_agent as module
from marin_resources.configuration.settings import SettingError
from marin_resources.configuration.user_agent import user_agent

VERSION = importlib.metadata.version("marin-dagster")


def test_without_a_contact_it_is_the_name_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_CONTACT", raising=False)
    assert user_agent() == f"marin-dagster/{VERSION}"


@pytest.mark.parametrize("contact", ["you@example.org", "mailto:you@example.org", "https://example.org/our-data"])
def test_a_contact_stands_between_parentheses(contact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CONTACT", f" {contact} ")
    assert user_agent() == f"marin-dagster/{VERSION} ({contact})"


@pytest.mark.parametrize("contact", ["you", "https://example", "you@example.org\r\nX: y", "a@b.de)", "ü@example.org"])
def test_what_is_no_address_is_refused_in_one_sentence(contact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_CONTACT", contact)
    with pytest.raises(SettingError, match=r"MARIN_CONTACT is .*, expected an address of a page"):
        user_agent()


def test_code_that_is_not_installed_has_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIN_CONTACT", raising=False)
    monkeypatch.setattr(module, "DISTRIBUTION", "marin-not-installed")
    module._version.cache_clear()
    assert user_agent() == "marin-not-installed/unknown"
    module._version.cache_clear()
