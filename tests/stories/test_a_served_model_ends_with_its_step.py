"""A step with a server of a model beside it: whatever ends the step ends the server, and the step can go on."""

from __future__ import annotations

import signal
import subprocess
import textwrap
from pathlib import Path
from pydoc_data.topics import topics

import psutil
import pytest
from dagster_homes import new_home
from random_llama import write_random_llama
from running import alive, start_script, wait_until

from marin_assets.documents import Document, read_documents, shard_name, write_documents

EXPERIMENT = """
from marin_assets import executor_main, output_path_of
from marin_assets.defaults import default_download, default_generation
from marin_assets.inference.engine import JAX

def steps():
    documents, model = default_download("documents", {documents!r}), default_download("model", {model!r})
    return [default_generation("help", documents, output_path_of(model), "{{text}}", max_tokens=40, engine=JAX)]

if __name__ == "__main__":
    executor_main(steps())
"""
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "hf").mkdir()
    model = write_random_llama(tmp_path / "hf", list(topics.values())[:50], 64)
    documents = [Document(id=f"{n}#{i}", text=text[:40]) for n, text in topics.items() for i in range(12)]
    for i in range(6):
        write_documents(str(tmp_path / "documents" / shard_name(i, 6)), documents[i::6])
    script = tmp_path / "generating.py"
    script.write_text(textwrap.dedent(EXPERIMENT).format(documents=str(tmp_path / "documents"), model=model))
    return script


def start(script: Path, prefix: Path) -> subprocess.Popen[str]:
    home = script.parent / f"home-{prefix.name}"
    if not home.exists():
        new_home(home)
    return start_script(script, env={"MARIN_PREFIX": str(prefix), "DAGSTER_HOME": str(home)})


def server_below(prefix: Path) -> psutil.Process | None:
    """The server of a step of that prefix."""
    for process in psutil.process_iter():
        try:
            if "marin_assets.inference.jax_server" in process.cmdline() and process.environ()["MARIN_PREFIX"] == str(
                prefix
            ):
                return process
        except (psutil.Error, KeyError):
            continue
    return None


def answers(prefix: Path) -> dict[str, str]:
    (folder,) = prefix.glob("generated/help-??????")
    return {one.id: one.text for path in folder.glob("*.jsonl.zst") for one in read_documents(str(path))}


def shards(prefix: Path) -> int:
    return len(list(prefix.glob("generated/help-*/*.jsonl.zst")))


def test_ctrl_c_ends_the_server_and_a_killed_worker_is_replaced(script: Path, tmp_path: Path) -> None:
    prefix, quiet = tmp_path / "disturbed", tmp_path / "quiet"
    run = start(script, prefix)
    server = wait_until(lambda: server_below(prefix), "the server", timeout_s=120)
    wait_until(lambda: shards(prefix) > 0, "a first shard", timeout_s=120)
    run.send_signal(signal.SIGINT)
    assert _ended(run, 60) == 130
    wait_until(lambda: not alive(server.pid), "the server to end", timeout_s=20)

    kept = shards(prefix)
    assert 0 < kept < 6
    run = start(script, prefix)
    server = wait_until(lambda: server_below(prefix), "the second server", timeout_s=120)
    supervisor = psutil.Process(server.ppid())
    wait_until(lambda: shards(prefix) > kept, "another shard", timeout_s=120)
    psutil.Process(supervisor.ppid()).kill()
    wait_until(lambda: not alive(server.pid), "the second server to end", timeout_s=20)
    assert _ended(run, 300) == 0, "the run goes on with another worker"

    assert _ended(start(script, quiet), 300) == 0
    assert answers(prefix) == answers(quiet)
    assert server_below(prefix) is None


def _ended(run: subprocess.Popen[str], timeout_s: float) -> int:
    """The exit code; what it prints is read, so that it can go on."""
    run.communicate(timeout=timeout_s)
    return run.returncode
