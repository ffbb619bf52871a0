"""What an asset's page shows of what its step has read from other regions."""

from __future__ import annotations

from pathlib import Path

import pytest

from marin_assets.metadata import materialization_metadata
from marin_resources.output import Observed
from marin_resources.produce import Produced
from marin_resources.storage.account import Account, charged_to
from marin_resources.storage.files import write_bytes
from marin_resources.storage.mirror import local_path_of


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """A step here, and a file of 900 bytes in another region."""
    here, there = tmp_path / "here", tmp_path / "there"
    monkeypatch.setenv("MARIN_PREFIX", str(here))
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", f"here={here},there={there}")
    write_bytes(f"{there}/raw/words.txt", b"x" * 900)
    return Account(step="counts", output_path=f"{here}/counts-1", prefix=str(here), attempt=1, budget_bytes=1000)


def page_of(account: Account, words_path: str) -> dict[str, object]:
    observed = Observed(path=account.output_path, record={"config": {"words_path": words_path}})
    return materialization_metadata(Produced(observed=observed, reused=False))


def test_what_was_moved_is_shown_with_its_bytes_and_files(account: Account) -> None:
    with charged_to(account):
        local_path_of("mirror://raw/words.txt")
    page = page_of(account, "mirror://raw/words.txt")
    assert page["transferred_bytes"] == 900
    [transfer] = page["transfers"].value  # type: ignore[attr-defined]
    assert (transfer["path"], transfer["from"], transfer["to"]) == ("mirror://raw/words.txt", "there", "here")


def test_a_step_that_may_read_elsewhere_and_did_not_shows_nothing_moved(account: Account) -> None:
    page = page_of(account, "mirror://raw/words.txt")
    assert page["transferred_bytes"] == 0
    assert "transfers" not in page


def test_other_steps_say_nothing_of_transfers(account: Account) -> None:
    assert "transferred_bytes" not in page_of(account, "/somewhere/raw/words.txt")
