"""The Ray of a run ends with its process, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from running import alive, wait_until

from marin_resources.hardware.resources import tpu
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.ray_tpu.local.orphan_reaper import rays_processes
from marin_resources.ray_tpu.requirements import Requirements

START = """
import sys
from marin_resources.ray_tpu.local.backend import LocalBackend
backend = LocalBackend(cpus=1)
ray = backend._own_ray.started()
print(ray._private.worker.global_worker.node.get_session_dir_path(), flush=True)
sys.stdin.readline()
backend.shutdown()
print("shut down", flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_nothing_of_it_is_left_by_a_kill_even_if_it_does_not_notice() -> None:
    """As an agent does not that is just starting, or paused."""
    run = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    session = run.stdout.readline().strip()
    agents = wait_until(lambda: _agents(session, run.pid), "Ray's agents")
    for agent in agents:
        agent.send_signal(signal.SIGSTOP)
    run.kill()
    run.communicate()
    wait_until(lambda: not rays_processes(session, run.pid), "Ray's processes to be gone", timeout_s=30)


BUSY = """
import os, subprocess, sys, psutil, ray
from marin_resources.ray_tpu.local import backend as local
from marin_resources.ray_tpu.ray_options import UnmeetableError
init, failed = ray.init, []

def busy_machine(**options):
    if len(failed) == {failures}:
        return init(**options)
    failed.append(subprocess.Popen(["sleep", "600"]))
    failed.append(subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", "/ray/raylet"], stdin=-1))
    raise Exception("The current node timed out during startup. This could happen because …")

ray.init = busy_machine
os.getloadavg = lambda: ({load}, 0, 0)
backend = local.LocalBackend(cpus=1)
try:
    backend._own_ray.started()
    print("started")
except UnmeetableError as error:
    print(error)
for process in failed:
    if "raylet" in str(process.args):
        process.wait(10)
    else:
        assert process.poll() is None
        process.kill()
backend.shutdown()
"""


def started_on_a_busy_machine(failures: int, load: int) -> subprocess.CompletedProcess[str]:
    """`failures` is twice the number of starts that fail."""
    script = BUSY.format(failures=failures, load=load)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)


@pytest.mark.long
@pytest.mark.parametrize(("failures", "load", "of"), [(2, 1, 4), (12, 1000, 20)])
def test_a_ray_that_a_busy_machine_did_not_start_in_time_is_started_again(failures: int, load: int, of: int) -> None:
    ended = started_on_a_busy_machine(failures, load)
    assert ended.stdout == "started\n"
    assert f"Ray did not start in its 30 s (start 1 of {of}), with a load of {load} on " in ended.stderr


@pytest.mark.parametrize(("load", "starts"), [(1, 4), (1000, 20)])
def test_a_ray_that_never_starts_is_one_sentence(load: int, starts: int) -> None:
    ended = started_on_a_busy_machine(-1, load)
    assert ended.stdout.startswith(
        f"Ray did not start on this machine in {starts} starts of 30 s, with a load of {load} "
    )
    assert ended.stdout.endswith("Run again when it is less busy; complete outputs are reused.\n")


@pytest.mark.long
def test_a_process_that_has_shut_its_ray_down_lives_on() -> None:
    run = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdin is not None
    assert run.stdout is not None
    session = run.stdout.readline().strip()
    started = " ".join(word for process in rays_processes(session, run.pid) for word in process.cmdline())
    assert not [daemon for daemon in ("dashboard.py", "monitor.py") if daemon in started]  # they serve nobody here
    [companion] = [one for one in psutil.Process(run.pid).children() if "orphan_reaper" in str(one.cmdline())]
    run.stdin.write("\n")
    run.stdin.flush()
    assert run.stdout.readline() == "shut down\n"
    wait_until(lambda: not alive(companion.pid), "the companion to end", timeout_s=60)
    assert rays_processes(session, run.pid) == []
    run.communicate()
    assert run.returncode == 0


ENVIRONMENT = """
import os
from marin_resources.ray_tpu.local.backend import LocalBackend
backend = LocalBackend(cpus=1)
ray = backend._own_ray.started()
task = ray.remote(runtime_env={"env_vars": {"OF_THE_TASK": "there"}})(lambda: os.environ["OF_THE_TASK"])
print(ray.get(task.remote()))
backend.shutdown()
"""


@pytest.mark.long
def test_a_function_of_a_step_may_ask_ray_for_a_runtime_environment() -> None:
    """Whose agent is still starting when Ray is up, on a port that was reserved for it."""
    ended = subprocess.run([sys.executable, "-c", ENVIRONMENT], capture_output=True, text=True, check=True)
    assert ended.stdout == "there\n"


AHEAD = """
import os, ray
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.ray_tpu.local.local_ray import ray_started_ahead

with ray_started_ahead():
    pass
print(ray.is_initialized())
with ray_started_ahead():
    backend = LocalBackend(cpus=os.cpu_count())
    backend._own_ray.started()
print(ray.is_initialized())
backend.shutdown()
print(ray.is_initialized())
"""


@pytest.mark.long
def test_a_ray_that_was_started_ahead_belongs_to_the_back_end_that_takes_it_or_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", AHEAD], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "True", "False"]


def _agents(session: str, owner: int) -> list[psutil.Process]:
    found = [process for process in rays_processes(session, owner) if "Agent" in str(process.cmdline())]
    return found if len(found) == 1 else []


def test_all_that_a_step_lacks_on_this_machine_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    extras, packages = ("no-such-extra", "nor-this-one"), ("not a package",)
    required = Requirements(step="x", extras=extras, env=("NO_SUCH_KEY",), packages=packages, resources=tpu("v4-16"))
    (missing_by_step,) = LocalBackend(cpus=1).missing_by_step([required]).values()
    assert [requirement.what.partition(",")[0] for requirement in missing_by_step] == [
        "the extras 'no-such-extra'",
        "the variable 'NO_SUCH_KEY'",
        "the package 'not a package'",
        "a slice of several hosts",
    ]


def test_a_slice_of_several_hosts_is_refused_with_what_to_do() -> None:
    required = Requirements(step="checkpoints/x", resources=tpu("v4-16"))
    ((requirement,),) = LocalBackend(cpus=1).missing_by_step([required]).values()
    assert requirement.phrase == (
        "requests a slice of several hosts, and a Ray of the run's own has one. Run it on a cluster: set "
        "MARIN_CLUSTER, or rehearse it with marin cluster local up --fake."
    )


ON_A_GPU = """
import asyncio, functools, ray
ray.init = functools.partial(ray.init, num_gpus=1)
from job_process import X
from marin_resources.hardware.resources import cpu, gpu
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.storage.output.store import Store
from marin_resources.wire.task import Task

async def run(resources, attempt):
    path = Store(prefix).locate(X)
    task = Task(output=X, prefix=prefix, path=path, fn="exp:show", config={{}}, attempt=attempt, resources=resources)
    outcome = await backend.wait(await backend.submit(task), lambda text: print(text, flush=True))
    assert outcome.end.value == "failed", outcome

prefix = {prefix!r}
backend = LocalBackend(cpus=1)
asyncio.run(run(gpu(), 1))
asyncio.run(run(cpu(), 2))
backend.shutdown()
"""


@pytest.mark.long
def test_a_step_with_a_gpu_names_it_to_jax_and_takes_its_memory(tmp_path: Path) -> None:
    """Ray counts a GPU that is not there. The function fails, so that it can run again."""
    (tmp_path / "exp.py").write_text(
        "import os\n"
        "def show(config):\n"
        "    names = ('MARIN_ACCELERATOR', 'XLA_CLIENT_MEM_FRACTION')\n"
        "    print('shown', *(os.environ.get(name) for name in names), flush=True)\n"
        "    raise SystemExit(1)\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environ = {name: value for name, value in os.environ.items() if "MEM_FRACTION" not in name}
    script = ON_A_GPU.format(prefix=str(tmp_path / "prefix"))
    command, environ = [sys.executable, "-c", script], {**environ, "PYTHONPATH": paths}
    ended = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert ended.returncode == 0, ended.stderr
    assert [line for line in ended.stdout.splitlines() if line.startswith("shown")] == [
        "shown gpu 0.9",
        "shown None None",
    ]
