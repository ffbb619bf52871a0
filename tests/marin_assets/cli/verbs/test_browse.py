"""`marin browse`: a step or a path opens at its page, on this machine alone."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from browser_server import Browser
from location import Location
from stored_evaluations import answers, store_evaluation

from marin_assets.browse.query import address
from marin_assets.cli.verbs import browse
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were opened in a browser, by a server that ends at once."""
    pages: list[str] = []
    monkeypatch.setattr(browse, "serve", lambda listening, prefixes, *, hosts, on_start: on_start())
    monkeypatch.setattr(browse, "open_browser", pages.append)
    return pages


def test_a_step_opens_at_its_output(made: Location, marin: Marin, opened: list[str]) -> None:
    code, out, err = marin("browse", "toy/data")
    [page] = opened
    assert (code, err) == (0, "")
    assert out == f"{page}  (Ctrl-C ends it)\n"
    below = made.path("toy/data").removeprefix(f"{made.store.prefix}/").replace("/", "%2F")
    assert page.partition("/output?")[2] == f"path={below}"


def test_a_path_opens_at_its_page(made: Location, marin: Marin, opened: list[str]) -> None:
    path = made.path("toy/data")
    write_bytes(join(path, "rows.jsonl"), b"{}\n")
    below = path.removeprefix(f"{made.store.prefix}/")
    for target in (below, path, f"{below}/rows.jsonl"):
        assert marin("browse", target)[0] == 0
    assert ["rows" if "/rows?" in page else "output" for page in opened] == ["output", "output", "rows"]


def test_two_outputs_open_at_their_difference(made: Location, marin: Marin, opened: list[str]) -> None:
    path = made.path("toy/data")
    write_bytes(join(path, "rows.jsonl"), b"{}\n")
    below = path.removeprefix(f"{made.store.prefix}/")
    assert marin("browse", "toy/data", "--difference", f"{below}/rows.jsonl")[0] == 0
    [page] = opened
    name = below.replace("/", "%2F")
    assert page.partition("/difference?")[2] == f"path={name}&before={name}%2Frows.jsonl"


def test_evaluations_open_side_by_side(made: Location, marin: Marin, opened: list[str]) -> None:
    write_bytes(join(made.path("toy/data"), "samples.jsonl"), b"")
    other = store_evaluation(made.store.prefix, "evaluations/other", answers([1, 0]))
    assert marin("browse", "--compare", "toy/data", other, "--task", "arc", "--metric", "acc")[0] == 0
    [page] = opened
    below = made.path("toy/data").removeprefix(f"{made.store.prefix}/")
    assert page.partition("/models")[2] == address("", model=[below, other], task="arc", metric="acc")[1:]


def test_without_a_step_the_first_page_opens_unless_it_is_only_to_be_printed(
    made: Location, marin: Marin, opened: list[str]
) -> None:
    assert marin("browse")[0] == 0
    assert [page.endswith("/") for page in opened] == [True]
    code, out, _ = marin("browse", "--no-browser")
    assert code == 0
    assert out.startswith("http://127.0.0.1:")
    assert len(opened) == 1


def test_a_deployment_says_what_is_shown_and_by_which_name(
    made: Location, marin: Marin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served: list[tuple[str, list[str], list[str]]] = []

    def serve(listening: socket.socket, prefixes: list[str], *, hosts: list[str], on_start: object) -> None:
        served.append((listening.getsockname()[0], list(prefixes), list(hosts)))

    monkeypatch.setattr(browse, "serve", serve)
    monkeypatch.setenv("MARIN_BROWSE_URL", "https://Browse.example.org")
    monkeypatch.setenv("MARIN_BROWSE_PREFIXES", f"{tmp_path}/other")
    assert marin("browse", "--no-browser", "--host", "0.0.0.0", "--also", f"{tmp_path}/third")[0] == 0
    prefixes = [made.store.prefix, f"{tmp_path}/other", f"{tmp_path}/third"]
    assert served == [("0.0.0.0", prefixes, ["browse.example.org"])]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["toy/dtaa"], 2, "Did you mean 'toy/data'"),
        (["toy"], 2, "marin browse takes one step"),
        (["toy/database"], 1, "toy/database has no output at"),
        (["/nowhere/at/all"], 1, "is outside of what is shown"),
        (["--host", ""], 2, "--host is empty, expected an address"),
        (["--host", "nowhere.invalid"], 2, "there is no address 'nowhere.invalid' here"),
        (["--port", "0"], 2, "expected a number from 1 to 65535"),
        (["--partition", "2026"], 2, "got --partition without a step"),
        (["--difference", "toy/data"], 2, "got --difference without a step"),
        (["toy/data", "--difference", "toy/dtaa"], 2, "Did you mean 'toy/data'"),
        (["--task", "arc"], 2, "got --task without --compare"),
    ],
)
def test_a_mistake_is_one_sentence(
    made: Location, marin: Marin, opened: list[str], arguments: list[str], code: int, sentence: str
) -> None:
    got, out, err = marin("browse", *arguments)
    assert (got, out) == (code, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert opened == []


COMPARED = [
    (["--compare", "evaluations/a-abc123"], 2, "1 evaluation was named, expected 2 to 8"),
    (["--compare", "evaluations/a-abc123", "evaluations/a-abc123"], 2, "is the same evaluation as"),
    (["--compare", "evaluations/a-abc123", "toy/data"], 2, "has no answers to questions: no file samples.jsonl"),
    (["--compare", "evaluations/a-abc123", "toy/dtaa"], 2, "Did you mean 'toy/data'"),
    (["--compare", "evaluations/a-abc123", "toy/database"], 1, "toy/database has no output at"),
    (["--compare", "evaluations/a-abc123", "/nowhere"], 1, "is outside of what is shown"),
    (["--compare", *["evaluations/a-abc123"] * 9], 2, "9 evaluations were named, expected 2 to 8"),
    (["toy/data", "--compare", "toy/data", "evaluations/a-abc123"], 2, "got 'toy/data' and --compare"),
    (["--compare", "toy/data", "evaluations/a-abc123", "--partition", "2026"], 2, "got --compare and --partition"),
]


def test_a_mistake_about_evaluations_is_one_sentence(made: Location, marin: Marin, opened: list[str]) -> None:
    store_evaluation(made.store.prefix, "evaluations/a", answers([1, 0]))
    for arguments, code, sentence in COMPARED:
        got, out, err = marin("browse", *arguments)
        assert (got, out) == (code, "")
        assert sentence in err
        assert len(err.strip().splitlines()) == 1
    assert opened == []


def test_a_port_that_is_taken_is_one_sentence(made: Location, marin: Marin, opened: list[str]) -> None:
    with browse.listen(0) as taken:
        code, _, err = marin("browse", "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "is taken" in err


@pytest.mark.long
def test_the_command_serves_until_it_is_stopped(disk_prefix: str) -> None:
    command = [sys.executable, "-m", "marin_assets.cli", "browse", "--prefix", disk_prefix, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split()[0].rstrip("/").rpartition(":")[2])
        assert "0 complete outputs" in Browser(port).get("").text
        health = Browser(port).send("GET", "/health", {"Host": "10.0.0.7:3002"})
        assert (health.status, health.html) == (200, "ok"), "a probe names an address"
        assert Browser(port).send("GET", "/", {"Host": "10.0.0.7:3002"}).status == 403
        server.terminate()
        server.wait(20)
