"""The token opens gated repositories, goes to the hub's own origin alone, and is written nowhere."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest
from dataset_hub import DatasetHub, dataset_hub
from hub_downloads import FILES, NAME, download, files_of

from marin_assets.stages.download.hub.repository import HubError
from marin_resources.types.errors import MarinError

SENT = {"hub": {"Bearer hf_reads"}, "storage": {None}}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HF_TOKEN", "hf_reads")
    return "hf_reads"


def test_a_gated_dataset_is_downloaded_with_a_token_that_the_storage_never_sees(
    hub: DatasetHub, output: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CONTACT", "https://example.org/data")
    hub.repos[f"datasets/{NAME}"].is_gated = True
    download(output)
    assert files_of(output) == FILES
    assert hub.tokens == SENT
    [agent] = hub.agents
    assert (agent or "").endswith(" (https://example.org/data)")


@pytest.mark.parametrize("variable", ["HF_TOKEN_PATH", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_token_of_a_login_is_used(
    hub: DatasetHub, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    file = tmp_path / {"HF_TOKEN_PATH": "token", "HF_HOME": "token", "XDG_CACHE_HOME": "huggingface/token"}[variable]
    file.parent.mkdir(exist_ok=True)
    file.write_text("hf_reads\n")
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv(variable, str(file if variable == "HF_TOKEN_PATH" else tmp_path))
    hub.repos[f"datasets/{NAME}"].is_private = True
    assert download(output)["files"] == len(FILES)
    assert hub.tokens == SENT


@pytest.mark.parametrize("token", ["hf_line\nnext", "hf_ünï", "hf_two words"])
def test_a_token_that_is_none_is_a_sentence_without_it(
    hub: DatasetHub, output: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(HubError, match="has a letter that no token has") as refused:
        download(output)
    assert token not in str(refused.value)
    assert not hub.requests


def test_a_wrong_token_is_a_sentence_without_it(hub: DatasetHub, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    hub.repos[f"datasets/{NAME}"].is_gated = True
    with pytest.raises(MarinError, match=r"is gated, and the token that was sent does not open it \(403\)") as refused:
        download(output)
    assert "hf_wrong" not in "".join(traceback.format_exception(refused.value))


def test_the_token_is_in_no_file_no_log_and_no_result(
    hub: DatasetHub, output: Path, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    hub.fault("data/a.bin", "cut", "expire", "server_error", "hang_up")
    hub.fault("tree", "limited")
    with caplog.at_level(logging.DEBUG):
        result = download(output)
    texts = [
        caplog.text,
        repr(result),
        *(f"{file} {file.read_bytes()!r}" for file in output.rglob("*") if file.is_file()),
    ]
    assert not [text for text in texts if token in text]
    assert "X-Signature" not in "".join(record.getMessage() for record in caplog.records if "marin" in record.name)


def test_a_hub_that_redirects_to_another_gives_it_no_token(
    hub: DatasetHub, output: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dataset_hub() as front:
        front.elsewhere = hub.url
        monkeypatch.setenv("HF_ENDPOINT", front.url)
        download(output)
        assert files_of(output) == FILES
        assert front.tokens["hub"] == {"Bearer hf_reads"}
        assert hub.tokens == {"hub": {None}, "storage": {None}}


def test_a_listing_that_continues_at_another_host_is_refused(hub: DatasetHub, output: Path, token: str) -> None:
    hub.page_rows, hub.next_pages_at = 2, hub.storage_url
    with pytest.raises(HubError, match=r"continues at a page of 'http://127.* that is not the hub"):
        download(output)
    assert hub.tokens["storage"] == set()


def test_the_password_of_netrc_is_not_sent(
    hub: DatasetHub, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login reader password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    download(output)
    assert hub.tokens == {"hub": {None}, "storage": {None}}
