"""The Ray of a run ends with its process, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest
from running import alive, wait_until

from marin_resources.ray_tpu.leftovers_of_ray import rays_processes

START = """
import sys
from marin_resources.ray_tpu.local import LocalBackend
backend = LocalBackend(cpus=1)
ray = backend._owner.submit(backend._start).result()
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


@pytest.mark.long
def test_a_process_that_has_shut_its_ray_down_lives_on() -> None:
    run = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdin is not None
    assert run.stdout is not None
    session = run.stdout.readline().strip()
    [companion] = [one for one in psutil.Process(run.pid).children() if "leftovers_of_ray" in str(one.cmdline())]
    run.stdin.write("\n")
    run.stdin.flush()
    assert run.stdout.readline() == "shut down\n"
    wait_until(lambda: not alive(companion.pid), "the companion to end", timeout_s=60)
    assert rays_processes(session, run.pid) == []
    run.communicate()
    assert run.returncode == 0


def _agents(session: str, owner: int) -> list[psutil.Process]:
    found = [process for process in rays_processes(session, owner) if "Agent" in str(process.cmdline())]
    return found if len(found) == 2 else []
