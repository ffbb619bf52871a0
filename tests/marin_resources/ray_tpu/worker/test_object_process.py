"""Objects in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from object_in_a_process import one

from marin_resources.ray_tpu.worker.object_process import CallError, LostProcessError, ObjectProcesses


def test_an_object_keeps_its_state_between_calls_in_another_process() -> None:
    with one() as counter:
        assert [counter.call("add", 2), counter.call("add", 2)] == [5, 7]
        assert counter.call("pid") != os.getpid()


def test_errors_come_back_as_a_sentence_and_the_object_lives() -> None:
    with one() as counter:
        for method in ("fail", "not_plain", "no_such_method"):
            with pytest.raises(CallError):
                counter.call(method)
        assert counter.call("add", 1) == 4
    with pytest.raises(CallError, match="below zero"), one(-1):
        pass


def test_a_call_that_hangs_ends_at_its_limit_and_so_does_its_process() -> None:
    pids: list[int] = []

    def hang() -> None:
        with one() as counter:
            pids.append(counter.call("pid"))
            counter.call("hang", timeout_s=0.2)

    with pytest.raises(TimeoutError):
        hang()
    assert not os.path.exists(f"/proc/{pids[0]}")


def test_a_lost_process_is_opened_again_and_the_call_is_made_there(tmp_path: Path) -> None:
    with ObjectProcesses(one, 2) as counters:
        assert counters.call("die_once", str(tmp_path / "note")) == 3
        with pytest.raises(LostProcessError, match="code -9"):
            counters.call("die")


def test_it_ends_with_the_process_that_started_it() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from object_in_a_process import one\n"
        "with one() as counter:\n"
        "    print(counter.call('pid'), flush=True)\n"
        "    counter.call('hang')\n"
    )
    here = str(Path(__file__).parents[3] / "support")
    step = subprocess.Popen([sys.executable, "-c", program, here], stdout=subprocess.PIPE, text=True)
    assert step.stdout is not None
    pid = int(step.stdout.readline())
    step.kill()
    step.communicate()
    for _ in range(200):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.05)
    raise AssertionError("the object's process is still there")
