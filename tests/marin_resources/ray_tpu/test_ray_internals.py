"""Each private use of Ray, on a real one: a Ray of a process, with a further node."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from ray._private import worker
from running import ROOT

from marin_resources.ray_tpu.ray_internals import filter_printed_lines

USES = """
import json, os, subprocess, sys, time
import psutil
from marin_resources.ray_tpu import ray_internals
from marin_resources.ray_tpu.cluster.on_head.program import with_functions
from marin_resources.ray_tpu.local.local_ray import OwnRay
sys.path.insert(0, {support!r})
from running import wait_until

seen, own = {{}}, OwnRay(1)
ray = own.started()
for process in psutil.Process().children(recursive=True):
    scripts = [os.path.basename(word) for word in process.cmdline()[1:4] if word.endswith(".py")]
    seen.setdefault("programs", []).append(scripts[0] if scripts else process.name())

names = ("kv_put", "kv_get", "kv_keys", "kv_delete", "drain_node", "free_resources", "draining_nodes")
on_head = {{}}  # as a program on the head of a cluster has them: by their text
exec(with_functions("import time", *(getattr(ray_internals, name) for name in names)), on_head)
kv_put, kv_get, kv_keys, kv_delete, drain_node, free_resources, draining_nodes = map(on_head.get, names)

for key, value in ((b"a/1", b"1"), (b"a/12", b"12"), (b"b", b"b"), (b"a/1", b"one")):
    kv_put(key, value, b"marin")
kv_put(b"a/1", b"of another", b"other")
seen["keys"] = sorted(key.decode() for key in kv_keys(b"a/", b"marin"))
seen["values"] = [kv_get(b"a/1", b"marin").decode(), kv_get(b"none", b"marin")]
kv_delete(b"a/1", b"marin")
seen["without one"] = [key.decode() for key in kv_keys(b"a/", b"marin")]
kv_put(b"a/2", b"2", b"marin")
kv_delete(b"a/", b"marin", by_prefix=True)
seen["without a prefix"] = [key.decode() for key in kv_keys(b"", b"marin")]

node = ray.get_runtime_context().get_node_id()
seen["free"] = free_resources()[node]["CPU"]
work = ray.remote(num_cpus=1)(lambda: (open({running!r}, "w").close(), time.sleep(600))).remote()
wait_until(lambda: os.path.exists({running!r}), "the task", timeout_s=60)  # Ray ends a drained node that has none
wait_until(lambda: "CPU" not in free_resources()[node], "the CPU to be in use", timeout_s=60)

if {node!r}:
    command = [sys.executable, "-P", ray_internals.__file__, "start", "--block", "--num-cpus=1"]
    further = subprocess.Popen([*command, "--address=" + ray.get_runtime_context().gcs_address])
    nodes = wait_until(lambda: ray.nodes() if len(ray.nodes()) == 2 else [], "the node", timeout_s=120)
    seen["addresses"] = [each["NodeManagerAddress"] for each in nodes]
    further.terminate()
    further.wait()

seen["draining"] = [node in draining_nodes()]
drain_node(node, 600, "a test")
wait_until(lambda: node in draining_nodes(), "the node to be drained", timeout_s=60)
seen["draining"].append(node in draining_nodes())
own.shutdown()
print(json.dumps(seen))
"""


def used(folder: Path, *, with_a_node: bool) -> dict[str, Any]:
    running = str(folder / "running")
    script = USES.format(support=str(ROOT / "tests/support"), node=with_a_node, running=running)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return used(tmp_path_factory.mktemp("ray"), with_a_node=False)


def test_the_head_stores_values_by_key_and_namespace(seen: dict[str, Any]) -> None:
    assert seen["keys"] == ["a/1", "a/12"]
    assert seen["values"] == ["one", None]
    assert seen["without one"] == ["a/12"]
    assert seen["without a prefix"] == ["b"]


def test_what_is_in_use_is_not_free(seen: dict[str, Any]) -> None:
    assert seen["free"] == 1


def test_a_drained_node_is_one_of_the_draining_nodes(seen: dict[str, Any]) -> None:
    assert seen["draining"] == [False, True]


def test_a_ray_of_a_process_starts_the_daemons_that_run_tasks(seen: dict[str, Any]) -> None:
    assert {"raylet", "gcs_server", "agent_stub.py"} <= {*seen["programs"]}
    assert not {"agent.py", "dashboard.py", "monitor.py", "log_monitor.py"} & {*seen["programs"]}


@pytest.mark.long
def test_a_further_node_is_on_loopback(tmp_path: Path) -> None:
    assert used(tmp_path, with_a_node=True)["addresses"] == ["127.0.0.1", "127.0.0.1"]


def test_ray_prints_the_lines_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)  # what is set below ends with the test
    for _ in range(2):
        filter_printed_lines(
            lambda process, lines: [line for line in lines if process == "raylet" and "memory" in line]
        )
    with redirect_stdout(io.StringIO()) as printed:
        for process, line in (("raylet", "its stack"), ("raylet", "out of memory"), ("gcs_server", "no memory")):
            worker.print_to_stdstream({"pid": process, "lines": [line], "is_err": False}, ignore_prefix=False)
    assert "out of memory" in printed.getvalue()
    assert "its stack" not in printed.getvalue()
    assert "no memory" not in printed.getvalue()
