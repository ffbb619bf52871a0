"""The places of the token, and its secrecy."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import os
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marin_resources.ray_tpu.cluster.api.token import Token, TokenError, find_token
from marin_resources.ray_tpu.cluster.settings import ClusterSettings

VALUE = "0123456789abcdef" * 4


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty home."""
    return {"HOME": str(tmp_path)}


def token_file(path: Path, text: str = VALUE, mode: int = 0o600) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def settings(**fields: str) -> ClusterSettings:
    return ClusterSettings(address="http://127.0.0.1:8265", **fields)


def found(environ: dict[str, str], **fields: str) -> str | None:
    token = find_token(settings(**fields), environ)
    return token.header()["Authorization"].removeprefix("Bearer ") if token else None


def test_no_print_copy_or_dump_of_a_token_shows_it() -> None:
    token = Token(VALUE, "RAY_AUTH_TOKEN")

    @dataclasses.dataclass
    class Holder:
        token: Token

    shown = [repr(token), str(token), f"{token}", f"{token!r:>9}", repr(Holder(token)), repr([token])]
    shown += [repr(dataclasses.asdict(Holder(token))), repr(copy.deepcopy(Holder(token))), repr(vars(Holder(token)))]
    shown += [repr([getattr(token, name) for name in Token.__slots__])]
    assert not [text for text in shown if VALUE in text]
    for dump in (pickle.dumps, copy.copy(token).__getstate__, json.dumps, vars):
        with pytest.raises(TypeError) as error:
            dump(token) if dump is not token.__getstate__ else dump()
        assert VALUE not in str(error.value)


def test_the_token_goes_into_a_header_and_out_of_what_a_server_echoes() -> None:
    token = Token(VALUE, "RAY_AUTH_TOKEN")
    assert token.header() == {"Authorization": f"Bearer {VALUE}"}
    assert token.redacted(f"you sent {VALUE}!") == "you sent <token>!"


def test_without_any_there_is_no_token(home: dict[str, str]) -> None:
    assert found(home) is None


def test_it_is_found_in_rays_places_in_rays_order(home: dict[str, str], tmp_path: Path) -> None:
    token_file(tmp_path / ".ray/auth_token", "default")
    assert found(home) == "default"
    home["RAY_AUTH_TOKEN_PATH"] = token_file(tmp_path / "token", "of-the-path\n")
    assert found(home) == "of-the-path"
    home["RAY_AUTH_TOKEN"] = "itself"
    assert found(home) == "itself"
    home["RAY_AUTH_MODE"] = "disabled"
    assert found(home) is None


def test_what_the_settings_of_the_cluster_set_goes_before_the_environment(home: dict[str, str], tmp_path: Path) -> None:
    """Also with RAY_AUTH_MODE=disabled, which is for the Ray of the process itself."""
    environ = {**home, "RAY_AUTH_TOKEN": "of-another-cluster", "RAY_AUTH_MODE": "disabled"}
    assert found(environ, token_path=token_file(tmp_path / "token", "ours")) == "ours"


def test_a_path_in_the_settings_that_is_the_environments_own_keeps_rays_order(
    home: dict[str, str], tmp_path: Path
) -> None:
    path = token_file(tmp_path / "token", "of-the-path")
    assert found({**home, "RAY_AUTH_TOKEN_PATH": path, "RAY_AUTH_TOKEN": "itself"}, token_path=path) == "itself"


def test_one_that_is_asked_for_and_nowhere_is_one_sentence(home: dict[str, str]) -> None:
    with pytest.raises(
        TokenError, match=r"^RAY_AUTH_MODE is 'token' and .* RAY_AUTH_TOKEN_PATH .* RAY_AUTH_TOKEN .*\.$"
    ):
        found({**home, "RAY_AUTH_MODE": "token"})


def test_a_file_that_is_not_there_empty_or_no_text_is_one_sentence(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").chmod(0o600)
    for path, why in [
        (str(tmp_path / "none"), "No such file"),
        (token_file(tmp_path / "empty", " \n"), "is empty"),
        (str(tmp_path / "binary"), "is no text"),
        (str(tmp_path), "directory"),
    ]:
        with pytest.raises(TokenError, match=f"^The Ray token's file '{path}' .*{why}.*: set RAY_AUTH_MODE=token"):
            found(home, token_path=path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_one_sentence(home: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(TokenError, match=r"cannot be read \(Permission denied\)"):
        found(home, token_path=token_file(tmp_path / "token", mode=0o000))


def test_a_file_that_every_user_may_read_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    """As Ray itself writes it, with mode 0644."""
    token_file(tmp_path / ".ray/auth_token", mode=0o644)
    with pytest.raises(TokenError, match=r"open to every user of this machine \(mode 0644\): chmod 600") as error:
        found(home)
    assert VALUE not in str(error.value)


def test_a_file_that_its_group_may_read_is_taken(home: dict[str, str], tmp_path: Path) -> None:
    """As Kubernetes mounts a secret for a pod with a group of its own."""
    assert found(home, token_path=token_file(tmp_path / "token", mode=0o640)) == VALUE


@pytest.mark.parametrize("text", ["two words", "two\nlines", "nöt ascii"])
def test_what_cannot_be_a_header_is_refused_without_being_shown(text: str, home: dict[str, str]) -> None:
    with pytest.raises(TokenError, match=r"^The Ray token from RAY_AUTH_TOKEN cannot be one, expected") as error:
        found({**home, "RAY_AUTH_TOKEN": text})
    assert text not in str(error.value)


@pytest.fixture
def secret_manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A Secret Manager that has "projects/p/secrets/ray"; yields its requests."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            known = "/secrets/ray/" in self.path
            body = json.dumps({"payload": {"data": base64.b64encode(f"{VALUE}\n".encode()).decode()}} if known else {})
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("MARIN_SECRET_MANAGER_URL", f"http://127.0.0.1:{server.server_port}")
        yield asked
        server.shutdown()


def test_a_secret_goes_before_all_else_and_is_fetched_once_for_many_conversations(
    home: dict[str, str], secret_manager: list[str]
) -> None:
    environ = {**home, "RAY_AUTH_TOKEN": "of-another-cluster"}
    assert {found(environ, token_secret="projects/p/secrets/ray") for _ in range(3)} == {VALUE}
    assert len(secret_manager) == 1


def test_a_secret_that_cannot_be_had_is_one_sentence(home: dict[str, str], secret_manager: list[str]) -> None:
    with pytest.raises(TokenError, match=r"^The Ray token cannot be read: .*projects/p/secrets/none") as error:
        found(home, token_secret="projects/p/secrets/none")
    assert "\n" not in str(error.value)
