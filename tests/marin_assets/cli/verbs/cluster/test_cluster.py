"""The cluster of a command, and its errors if that does not answer."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs_there import JobsThere

Marin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [],
            "marin cluster: got no verb, expected one of 'local', 'preempt', 'jobs', 'logs', 'stop-job', 'bad-hosts', ",
        ),
        (["stop"], "marin cluster: got 'stop' as the verb, did you mean 'stop-job'?"),
        (["local"], "marin cluster local: the following arguments are required: what."),
        (["local", "start"], "marin cluster local: argument what: invalid choice: 'start'"),
        (["local", "up", "--cpus", "0"], "--cpus is 0, expected 1 or more"),
        (["local", "down", "--cpus", "2"], "--cpus is 2, expected 1 or more, and for up alone."),
        (["local", "down", "--fake", "v4-16"], "marin cluster local: --fake is 'v4-16', expected for up alone."),
        (
            ["local", "up", "--fake", "v4-16,v4-15"],
            "marin cluster local: --fake: The catalogue has no TPU 'v4-15'; near it are 'v4-8', 'v4-16', 'v4-32'.",
        ),
        (["preempt"], "marin cluster preempt: the following arguments are required: SLICE."),
        (["logs"], "marin cluster logs: the following arguments are required: job."),
        (["stop-job", "a", "b"], "marin cluster stop-job: unrecognized arguments: b."),
        (["jobs"], "No cluster is selected. Set MARIN_CLUSTER, or pass --cluster"),
        (["jobs", "--cluster", ""], "--cluster is empty, expected the dashboard's URL"),
        (["jobs", "--cluster", "10.0.0.5"], "The Ray cluster's address is '10.0.0.5', expected 'local' or"),
        (
            ["jobs", "--cluster", "local"],
            "No local cluster is up on this machine. Start it: marin cluster local up",
        ),
        (["submit"], "marin cluster submit: no command is given. Put it after --: marin cluster submit -- python"),
        (["submit", "--"], "marin cluster submit: no command is given."),
        (["submit", "python", "x.py"], "marin cluster submit: unrecognized arguments: python x.py."),
        (["submit", "--cpus", "-1", "--", "x"], "marin cluster submit: --cpus is -1, expected 0 or more."),
        (["submit", "--memory", "0", "--", "x"], "marin cluster submit: --memory is 0, expected GB above 0."),
        (["submit", "--name", "a b", "--", "x"], "marin cluster submit: --name is 'a b', expected letters, digits"),
        (["submit", "--set", "A", "--", "x"], "marin cluster submit: --set has 'A' for a name, expected NAME=VALUE."),
        (["submit", "--env", "A=secret", "--", "x"], "marin cluster submit: --env is not the name of a variable"),
        (
            ["submit", "--set", "HF_TOKEN=secret", "--", "x"],
            "--set HF_TOKEN would show its value to all users of the",
        ),
        (
            ["submit", "--cluster", "http://h:1", "--extra", "trian", "--", "x"],
            "The command requests the extra 'trian'",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr_and_code_2(
    marin: Marin, arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MARIN_CLUSTER", raising=False)
    monkeypatch.setenv("MARIN_STATE_DIR", str(tmp_path))
    code, out, err = marin("cluster", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert sentence in err
    assert "secret" not in err.replace("secrets", "")


def test_help_names_what_there_is(marin: Marin) -> None:
    code, out, _ = marin("cluster", "--help")
    assert code == 0
    assert re.search(r"^ +stop-job +stop a job", out, re.MULTILINE)
    code, out, _ = marin("cluster", "submit", "--help")
    assert code == 0
    assert "marin cluster submit [options] -- COMMAND …" in out


@pytest.mark.parametrize("verb", [["jobs"], ["logs", "x"], ["stop-job", "x"], ["submit", "--", "x"]])
def test_a_cluster_that_does_not_answer_is_one_sentence(
    marin: Marin, verb: list[str], closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.py").write_text("")
    monkeypatch.setenv("MARIN_CLUSTER_WORKING_DIR", str(tmp_path))
    code, out, err = marin("cluster", verb[0], "--cluster", f"http://127.0.0.1:{closed_port}", *verb[1:])
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert f"http://127.0.0.1:{closed_port}" in err


def test_a_wrong_token_is_one_sentence_without_it(
    marin: Marin, jobs_there: JobsThere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("0123456789abcdef" * 4)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    code, out, err = marin("cluster", "jobs", "--cluster", jobs_there.address)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert "token" in err
    assert "0123456789abcdef" not in err


def test_the_command_asks_without_dagster_and_ray(jobs_there: JobsThere) -> None:
    program = (
        "import sys; from marin_assets.cli.main import main; main(['cluster', 'jobs', '--json']); "
        "print({'dagster', 'ray', 'gcsfs', 'jax'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "set()", ended.stderr
