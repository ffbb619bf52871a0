"""`marin path`, `marin logs` and `marin open`: the verbs about one step."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest
from location import Location

from marin_assets.cli.verbs import logs
from marin_assets.cli.verbs.dev import PORT_NOTE
from marin_resources.ray_tpu.log.attempt_log import local_log
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Claim
from marin_resources.storage.paths import is_local

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log in a bucket is read as often as one on a disk."""
    monkeypatch.setattr(logs, "BUCKET_POLL_S", 0.2)
    monkeypatch.setattr(logs, "SETTLE_S", 0.2)


def claim(location: Location, name: str, attempt: int = 1) -> Claim:
    [output] = [node.output for node in location.graph if node.name == name]
    return location.store.claim(output, attempt=attempt, resumable=False, run_id=None)


def test_the_path_of_a_complete_output_is_all_that_is_printed(made: Location, marin: Marin) -> None:
    assert marin("path", "toy/data") == (0, f"{made.path('toy/data')}\n", "")


def test_the_path_of_an_incomplete_output_comes_with_code_1_and_its_state(location: Location, marin: Marin) -> None:
    path = location.path("toy/data")
    assert marin("path", "toy/data") == (1, f"{path}\n", "toy/data is not complete: missing\n")
    location.store.fail(claim(location, "toy/data"), {}, "ValueError: not liked", "")
    said = "toy/data is not complete: failed, ValueError: not liked\n"
    assert marin("path", "toy/data") == (1, f"{path}\n", said)


@pytest.mark.parametrize("verb", ["path", "logs", "open"])
def test_a_word_that_selects_several_steps_is_one_sentence(experiment: str, marin: Marin, verb: str) -> None:
    sentence = f"marin {verb} takes one step, and 'toy/dat' selects toy/data, toy/database. Give the name of one.\n"
    assert marin(verb, "toy/dat") == (2, "", sentence)
    assert marin(verb, "toy/data", "--partition", "x") == (
        2,
        "",
        "Step 'toy/data' has no partitions. Leave out the key 'x'.\n",
    )


def test_the_log_is_that_of_the_latest_attempt_or_of_another_one(location: Location, marin: Marin) -> None:
    path = location.path("toy/data")
    code, out, err = marin("logs", "toy/data")
    assert (code, out, err) == (1, "", f"No attempt at toy/data has begun, at {path}\n")
    for attempt, text in ((1, b"first\r10%\r100%\nbroken"), (2, b"second\n")):
        held = claim(location, "toy/data", attempt)
        write_bytes(log_path(path, attempt), text)
        location.store.fail(held, {}, "ValueError: not liked", "")
    assert marin("logs", "toy/data") == (0, "second\n", "")
    assert marin("logs", "toy/data", "--attempt", "1") == (0, "100%\nbroken\n", "")
    assert marin("logs", "toy/data", "--follow") == (0, "second\n", "attempt 2 has ended: failed\n")
    code, out, err = marin("logs", "toy/data", "--attempt", "3")
    assert (code, out) == (2, "")
    assert err == "marin logs: --attempt is 3, expected 1 to 2, the latest of toy/data.\n"


def test_an_attempt_without_a_log_is_one_sentence(made: Location, marin: Marin) -> None:
    code, out, err = marin("logs", "toy/data")
    assert (code, out) == (1, "")
    assert err == f"Attempt 1 at toy/data has no log at {made.path('toy/data')}/.marin/attempts/1.log\n"


class Follower:
    """Follows an attempt in a thread."""

    def __init__(self, path: str, attempt: int) -> None:
        self.lines: Queue[str] = Queue()
        self._end = ""
        self._thread = threading.Thread(target=self._follow, args=(path, attempt))
        self._thread.start()

    def _follow(self, path: str, attempt: int) -> None:
        self._end = logs.follow(path, attempt, self.lines.put)

    def end(self) -> tuple[str, list[str]]:
        """How the attempt has ended, and the lines that came since."""
        self._thread.join(60)
        return self._end, [self.lines.get() for _ in range(self.lines.qsize())]


def test_following_goes_on_until_the_attempt_has_ended(location: Location) -> None:
    held = claim(location, "toy/data")
    log = log_path(held.path, 1)
    write_bytes(log, b"begun\n")
    follower = Follower(held.path, 1)
    assert follower.lines.get(timeout=60) == "begun"
    write_bytes(log, b"begun\nended\n")
    location.store.publish(held, {}, {})
    assert follower.end() == ("success", ["ended"])


def test_following_ends_with_a_worker_that_is_gone_and_with_a_newer_attempt(location: Location) -> None:
    gone = claim(location, "toy/data")
    write_bytes(log_path(gone.path, 1), b"begun\n")
    follower = Follower(gone.path, 1)
    assert follower.lines.get(timeout=60) == "begun"
    gone.lease.release()  # and nothing else is written
    assert follower.end() == ("its worker is gone", [])
    newer = claim(location, "toy/data", 2)
    assert Follower(gone.path, 1).end() == ("overtaken by attempt 2", ["begun"])
    newer.lease.release()


def test_a_worker_on_this_machine_is_read_before_its_log_is_in_the_bucket(location: Location, marin: Marin) -> None:
    held = claim(location, "toy/data")
    log = log_path(held.path, 1)
    if not is_local(log):
        spool = local_log(log)
        os.makedirs(os.path.dirname(spool), mode=0o700, exist_ok=True)  # as a worker does, which refuses others
        write_bytes(spool, b"not uploaded yet\n")
        assert marin("logs", "toy/data") == (0, "not uploaded yet\n", "")
        os.unlink(spool)
    held.lease.release()


def test_the_page_of_a_step_is_at_its_assets_key(
    experiment: str, marin: Marin, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda page: not opened.append(page))
    with socket.create_server(("127.0.0.1", 0)) as ui:
        port = ui.getsockname()[1]
        (dagster_home / PORT_NOTE).write_text(str(port))  # as `marin dev` does
        page = f"http://127.0.0.1:{port}/assets/toy/data"
        assert marin("open", "toy/data") == (0, f"{page}\n", "")
    assert opened == [page]
    monkeypatch.setenv("MARIN_UI_URL", "https://dagster.example.org/")
    assert marin("open", "toy/data", "--print") == (0, "https://dagster.example.org/assets/toy/data\n", "")
    assert opened == [page]


@pytest.mark.parametrize(
    ("port", "commands"),
    [(None, ("make dev", "marin dev --port 3000")), (1, ("make dev PORT=1", "marin dev --port 1"))],
    ids=["never served", "served at another port"],
)
@pytest.mark.parametrize("is_checkout", [True, False])
def test_a_ui_that_is_not_served_is_named_with_the_command_that_serves_it_here(
    experiment: str,
    marin: Marin,
    dagster_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: int | None,
    commands: tuple[str, str],
    *,
    is_checkout: bool,
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda page: pytest.fail("a page that does not exist is opened"))
    monkeypatch.setattr("marin_assets.cli.verbs.open._answers", lambda port: False)  # port 3000 may be in use here
    monkeypatch.setattr("marin_resources.configuration.command.checkout", lambda: Path.cwd() if is_checkout else None)
    if port is not None:
        (dagster_home / PORT_NOTE).write_text(str(port))
    code, out, err = marin("open", "toy/data")
    address = f"http://127.0.0.1:{port or 3000}"
    assert (code, out) == (1, f"{address}/assets/toy/data\n")
    command = commands[0] if is_checkout else commands[1]
    assert err == f"No UI is served at {address}. Start it, and open the address then: {command}\n"


def test_without_a_browser_the_address_is_printed_all_the_same(
    experiment: str, marin: Marin, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda page: False)
    with socket.create_server(("127.0.0.1", 0)) as ui:
        port = ui.getsockname()[1]
        (dagster_home / PORT_NOTE).write_text(str(port))
        code, out, err = marin("open", "toy/data")
    assert (code, out) == (1, f"http://127.0.0.1:{port}/assets/toy/data\n")
    tunnel = f"(ssh -L {port}:127.0.0.1:{port} …)"
    assert err == (
        "No browser is found on this machine. Open the address in one, through a tunnel if that is on another machine "
        f"{tunnel}, or pass --print.\n"
    )
