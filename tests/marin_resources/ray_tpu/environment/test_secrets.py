"""Secrets by name: from the environment, a folder, or Secret Manager."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from marin_resources.configuration.secret_manager import access_secret
from marin_resources.ray_tpu.environment.secrets import SecretError, load_secrets

SECRET = "projects/lab/secrets/HF_TOKEN"


def provided(*names: str, **environ: str) -> dict[str, str]:
    before = dict(environ)
    load_secrets(names, before)
    return before


def test_what_is_in_the_environment_stays(tmp_path: Path) -> None:
    (tmp_path / "HF_TOKEN").write_text("from the file")
    assert provided("HF_TOKEN", HF_TOKEN="own", MARIN_SECRETS_DIR=str(tmp_path))["HF_TOKEN"] == "own"


def test_a_file_of_its_name_is_next_without_its_line_end(tmp_path: Path, secret_server: Any) -> None:
    (tmp_path / "HF_TOKEN").write_text("from the file\n")
    environ = provided("HF_TOKEN", MARIN_SECRETS_DIR=str(tmp_path), MARIN_SECRETS_PROJECT="lab")
    assert environ["HF_TOKEN"] == "from the file"
    assert secret_server.asked == []


def test_secret_manager_is_last(tmp_path: Path, secret_server: Any) -> None:
    secret_server.secrets[f"{SECRET}/versions/latest"] = "ä secret".encode()
    environ = provided("HF_TOKEN", MARIN_SECRETS_DIR=str(tmp_path), MARIN_SECRETS_PROJECT="lab")
    assert environ["HF_TOKEN"] == "ä secret"


def test_a_secret_that_is_nowhere_names_the_variable_and_every_place(tmp_path: Path) -> None:
    with pytest.raises(SecretError) as raised:
        provided("HF_TOKEN", MARIN_SECRETS_DIR=str(tmp_path))
    assert str(raised.value) == (
        f"The variable 'HF_TOKEN' is not set on this node, '{tmp_path}/HF_TOKEN' does not exist, and "
        "MARIN_SECRETS_PROJECT names no Google project with a Secret Manager. Put the value into one of these "
        "places."
    )


def test_a_secret_that_google_lacks_names_every_place_too(tmp_path: Path, secret_server: Any) -> None:
    with pytest.raises(
        SecretError, match=r"'HF_TOKEN' is not set .*HF_TOKEN' does not exist\. The secret 'projects/lab"
    ):
        provided("HF_TOKEN", MARIN_SECRETS_DIR=str(tmp_path), MARIN_SECRETS_PROJECT="lab")


def test_a_file_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "HF_TOKEN").write_bytes(b"\xff\xfehidden")
    with pytest.raises(SecretError, match="cannot be read") as raised:
        provided("HF_TOKEN", MARIN_SECRETS_DIR=str(tmp_path))
    assert "hidden" not in str(raised.value)


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SecretError, match=r"'\.\./secret', expected letters"):
        provided("../secret", MARIN_SECRETS_DIR=str(tmp_path / "folder"))


def test_this_processs_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "MARIN_TEST_SECRET").write_text("x")
    monkeypatch.setenv("MARIN_SECRETS_DIR", str(tmp_path))
    monkeypatch.delenv("MARIN_TEST_SECRET", raising=False)
    load_secrets(["MARIN_TEST_SECRET"])
    assert os.environ.pop("MARIN_TEST_SECRET") == "x"


def test_a_version_of_a_secret_can_be_asked_for(secret_server: Any) -> None:
    secret_server.secrets[f"{SECRET}/versions/3"] = b"third"
    assert access_secret(f"{SECRET}/versions/3") == "third"


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (404, "does not exist, or has no version .HTTP 404"),
        (403, "may not be read by this process's Google account .HTTP 403: as the test wants it"),
        (400, "cannot be read .HTTP 400: as the test wants it"),
    ],
)
def test_a_refusal_is_one_sentence_with_the_secrets_name(status: int, says: str, secret_server: Any) -> None:
    secret_server.status = [status]
    with pytest.raises(SecretError, match=f"^The secret '{SECRET}' {says}"):
        access_secret(SECRET)
    assert len(secret_server.asked) == 1


def test_a_service_that_is_busy_is_asked_again(secret_server: Any) -> None:
    secret_server.secrets[f"{SECRET}/versions/latest"] = b"value"
    secret_server.status = [503, 429]
    assert access_secret(SECRET) == "value"


def test_a_service_that_stays_busy_is_one_sentence(secret_server: Any) -> None:
    secret_server.status = [503] * 3
    with pytest.raises(SecretError, match=r"cannot be read now: 'http://.*:access' responds with HTTP 503"):
        access_secret(SECRET)


def test_a_service_that_cannot_be_reached_is_one_sentence(secret_server: Any) -> None:
    secret_server.stop()
    with pytest.raises(SecretError, match=r"cannot be read now: .* responds with ConnectionError"):
        access_secret(SECRET)


def test_a_secret_that_is_no_text_is_one_sentence_without_it(secret_server: Any) -> None:
    secret_server.secrets[f"{SECRET}/versions/latest"] = b"\xff\xfe"
    with pytest.raises(SecretError, match="is not text"):
        access_secret(SECRET)


def test_a_machine_without_google_credentials_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MARIN_SECRET_MANAGER_URL", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(SecretError, match="has no usable Google credentials"):
        access_secret(SECRET)
