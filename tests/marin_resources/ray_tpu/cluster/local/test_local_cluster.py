"""The cluster of this machine: it starts once, and ends completely without touching others."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from ray_cluster import Cluster

from marin_resources.ray_tpu.cluster.local.head import answers
from marin_resources.ray_tpu.cluster.local.local_cluster import LocalClusterError, describe, down, find, up
from marin_resources.ray_tpu.cluster.local.processes import processes_of
from marin_resources.ray_tpu.cluster.local.state import LocalCluster, read_cluster, state_folder, write_cluster

UP = "from marin_resources.ray_tpu.cluster.local.local_cluster import up; print(up(cpus=1).address)"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The state folder of the test's own cluster, which ends with the test."""
    yield tmp_path / "state"
    down(state=tmp_path / "state")


def begin_up(state: Path) -> subprocess.Popen[str]:
    """Another process that starts the cluster, as another terminal would."""
    environ = {**os.environ, "MARIN_STATE_DIR": str(state)}
    return subprocess.Popen([sys.executable, "-c", UP], env=environ, stdout=subprocess.PIPE, text=True)


def dead(state: Path) -> LocalCluster:
    """The record of a cluster whose head is gone."""
    folder = state_folder(state)
    (folder / "r").mkdir()
    cluster = LocalCluster(
        id="0" * 32,
        host=os.uname().nodename,
        address="http://127.0.0.1:21001",
        cpus=1,
        gcs_port=21000,
        dashboard_port=21001,
        client_port=21002,
        temp_dir=str(folder / "r"),
        token_path=str(folder / "cluster.token"),
        log_path=str(folder / "cluster.log"),
        pid=os.getpid(),
        started=1.0,  # this process began later: the number has been used again
    )
    write_cluster(folder, cluster)
    return cluster


def test_without_one_there_is_nothing_to_find_or_to_end(state: Path) -> None:
    assert find(state=state) is None
    assert down(state=state) is None


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # it has ended since it was found
        return []


@pytest.mark.long
def test_two_that_start_it_at_once_get_one_which_ends_alone_and_whole(state: Path, cluster: Cluster) -> None:
    first, second = begin_up(state), begin_up(state)
    addresses = {each.communicate(timeout=120)[0] for each in (first, second)}
    found = find(state=state)
    assert found is not None
    assert addresses == {f"{found.address}\n"}, "two clusters, or none"
    assert found.address != cluster.address

    assert up(state=state) == up(cpus=1, state=state) == found, "it is up already"
    with pytest.raises(LocalClusterError, match=r"is up with 1 CPUs, and 3 are requested"):
        up(cpus=3, state=state)
    assert f"{found.address} answers: 1 CPUs" in describe(found)
    for path in (Path(found.token_path), state / "cluster.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = Path(found.token_path).read_text()
    words = [word for process in processes_of(found) for word in words_of(process)]
    assert token not in "".join(words), "everybody on the machine sees the words of a process"

    assert found.pid is not None
    os.kill(found.pid, signal.SIGKILL)  # Ray's agents outlive this
    psutil.wait_procs([psutil.Process(found.pid)] if psutil.pid_exists(found.pid) else [], timeout=10)
    assert find(state=state) is None, "a head that is dead is no cluster"
    assert down(state=state) == found
    assert processes_of(found) == []
    assert not Path(found.temp_dir).exists()
    assert not Path(found.token_path).exists()
    assert answers(cluster.local), "another cluster of this machine was touched"


def test_a_number_that_another_process_has_by_now_is_not_the_head(state: Path) -> None:
    dead(state)
    assert find(state=state) is None
    assert down(state=state) is not None
    assert psutil.pid_exists(os.getpid())


@pytest.mark.long
def test_a_head_that_ends_while_it_starts_is_reported_with_the_end_of_its_log(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_START_HOOK", "no_such_module.hook")
    with pytest.raises(LocalClusterError) as error:
        up(cpus=1, state=state)
    sentence, *tail = str(error.value).splitlines()
    assert sentence.startswith("The head of the local cluster ended while it started. Its log, ")
    assert "No module named 'no_such_module'" in tail[-1]
    assert find(state=state) is None
    assert read_cluster(state) is None, "nothing of it stays"


@pytest.mark.long
def test_a_head_that_ray_gave_too_little_time_is_started_again(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the command is one that ends as Ray does then; the third time it is Ray's."""
    too_late = tmp_path / "too_late.py"
    too_late.write_text("raise Exception('The current node timed out during startup. It is busy.')")
    start, starts = subprocess.Popen, list[int]()

    def slow_at_first(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        if "--head" not in command:
            return start(command, **options)  # type: ignore[call-overload, no-any-return]
        starts.append(1)
        ours = [sys.executable, str(too_late)] if len(starts) < 3 else command
        return start(ours, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", slow_at_first)
    try:
        assert answers(up(cpus=1, state=state))
        assert len(starts) == 3
    finally:
        down(state=state)


def test_a_cluster_of_another_machine_is_left_alone(state: Path) -> None:
    """Several machines may share the disk of a home."""
    text = (state_folder(state) / "cluster.json", dead(state))[0]
    text.write_text(text.read_text().replace(os.uname().nodename, "elsewhere"))
    for call in (find, down, up):
        with pytest.raises(LocalClusterError, match=r"belongs to the machine 'elsewhere'.* MARIN_STATE_DIR"):
            call(state=state)
    text.unlink()


def test_a_record_that_cannot_be_read_is_one_sentence(state: Path) -> None:
    (state_folder(state) / "cluster.json").write_text('{"pid":')
    with pytest.raises(LocalClusterError, match=r"^The record '.*' of the local cluster cannot be read"):
        find(state=state)
    (state / "cluster.json").unlink()


def test_the_state_is_where_the_environment_sets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("MARIN_STATE_DIR", raising=False)
    assert state_folder() == tmp_path / "xdg/marin"
    monkeypatch.setenv("MARIN_STATE_DIR", str(tmp_path / "here"))
    assert state_folder() == tmp_path / "here"
    assert stat.S_IMODE((tmp_path / "here").stat().st_mode) == 0o700


@pytest.mark.long
def test_one_that_was_killed_while_it_started_is_cleared_away_by_the_next(state: Path) -> None:
    starter = begin_up(state)
    while (known := read_cluster(state_folder(state))) is None or known.pid is None:
        assert starter.poll() is None
    starter.kill()
    starter.wait()
    os.kill(known.pid, signal.SIGKILL)
    started = up(cpus=1, state=state)
    assert started.id != known.id
    assert processes_of(known) == []
    assert answers(started)


@pytest.mark.long
def test_a_starter_that_is_killed_leaves_a_head_that_the_next_waits_for(state: Path) -> None:
    starter = begin_up(state)
    while (known := read_cluster(state_folder(state))) is None or known.pid is None:
        assert starter.poll() is None
    starter.kill()
    starter.wait()
    assert up(state=state).id == known.id
    assert answers(known)
