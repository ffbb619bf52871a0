"""Small steps for tests: their functions are importable by workers, and leave traces of having been called."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH, InputName, Step, output_path_of, versioned


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    value: int = versioned(1)
    note: str = ""
    """Unversioned."""
    input_path: str = ""
    seconds: float = 0
    gate: str = ""
    """A file whose absence lets the function end."""
    output_path: str = THIS_OUTPUT_PATH


def make(config: ToyConfig) -> dict[str, int]:
    """Write the value, and one line into calls.txt of the prefix's parent."""
    note_call(config)
    return write_value(config)


def write_value(config: ToyConfig) -> dict[str, int]:
    Path(config.output_path, "value.txt").write_text(str(config.value))
    return {"value": config.value}


def say(config: ToyConfig) -> dict[str, int]:
    """Print the note."""
    note_call(config)
    print(config.note, flush=True)
    return write_value(config)


def fail(config: ToyConfig) -> None:
    """Raise."""
    note_call(config)
    raise ValueError(f"the value {config.value!r} is not liked")


def wait_at_gate(config: ToyConfig) -> dict[str, int]:
    """Say that it has begun, then wait until the gate is gone."""
    note_call(config)
    print(f"waiting in process {os.getpid()}", flush=True)
    while os.path.exists(config.gate):
        time.sleep(0.02)
    return write_value(config)


def fail_at_gate(config: ToyConfig) -> None:
    """The same, and raise then."""
    wait_at_gate(config)
    raise ValueError(f"the value {config.value!r} is not liked")


def wait_connected_at_gate(config: ToyConfig) -> dict[str, int]:
    """The same, connected to the cluster as a step is that maps shards; say that every second."""
    from marin_resources.ray_tpu.shards.connection import connect

    connect()
    note_call(config)
    print(f"waiting in process {os.getpid()}", flush=True)
    while os.path.exists(config.gate):
        time.sleep(1)
        print("still connected", flush=True)
    return write_value(config)


def count_at_gate(config: ToyConfig) -> dict[str, int]:
    """Print a number fifty times a second until the gate is gone."""
    number = 0
    while os.path.exists(config.gate):
        print(f"number {number}", flush=True)
        number += 1
        time.sleep(0.02)
    return write_value(config)


def wait_with_a_child(config: ToyConfig) -> dict[str, int]:
    """The same, with a child process that would go on for ever."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(f"child {child.pid}", flush=True)
    return wait_at_gate(config)


def start_all_shapes(config: ToyConfig) -> None:
    """Start process trees of all shapes with a token (the note) and a folder (the gate); then wait for ever."""
    import process_shapes

    process_shapes.start_all(config.gate, config.note)
    print("all have started", flush=True)
    while True:
        time.sleep(60)


def ignore_being_told_to_stop(config: ToyConfig) -> dict[str, int]:
    """The same, and neither listens to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code])
    print(f"child {child.pid}", flush=True)
    return wait_at_gate(config)


def crash(config: ToyConfig) -> None:
    """End the worker's process in the way that the note names, after as many reported steps as the value has."""
    import ctypes

    from marin_resources.step_api.progress import report_step

    note_call(config)
    for step in range(config.value):
        report_step(step)
    if config.note == "SIGSEGV":
        ctypes.string_at(0)
    elif config.note == "os._exit":
        os._exit(9)
    else:
        os.kill(os.getpid(), getattr(signal, config.note))
        time.sleep(60)


def crash_one_step_later_each_time(config: ToyConfig) -> None:
    """Crash at the same line, and further on in each attempt."""
    from marin_resources.step_api.progress import report_step

    note_call(config)
    marker = Path(config.gate)
    step = int(marker.read_text()) if marker.exists() else 0
    marker.write_text(str(step + 1))
    report_step(step)
    os._exit(9)


def die_once(config: ToyConfig) -> dict[str, int]:
    """End the worker's process without a word the first time."""
    note_call(config)
    marker = Path(config.gate)
    if not marker.exists():
        marker.touch()
        os._exit(9)
    return write_value(config)


def kill_ray_once(config: ToyConfig) -> dict[str, int]:
    """The first time, kill the daemon of the worker's Ray that the note names, and compute on, unaware of it."""
    import psutil

    note_call(config)
    marker = Path(config.gate)
    if not marker.exists():
        marker.touch()
        raylet = psutil.Process().parent()
        assert raylet is not None
        run = raylet.parent()
        assert run is not None
        daemons = [raylet, *raylet.children(), *run.children()]
        next(daemon for daemon in daemons if config.note in daemon.cmdline()[0]).kill()
        time.sleep(600)
    return write_value(config)


def wait_the_first_time(config: ToyConfig) -> dict[str, int]:
    note_call(config)
    marker = Path(config.gate)
    if not marker.exists():
        marker.write_text(str(os.getpid()))
        time.sleep(600)
    return write_value(config)


def remove_own_folder(config: ToyConfig) -> dict[str, int]:
    """Begin with an empty folder, as many scripts do; write into it only with a value above 0."""
    note_call(config)
    shutil.rmtree(config.output_path)
    if config.value < 1:
        return {}
    os.makedirs(config.output_path)
    return write_value(config)


def remove_own_lease(config: ToyConfig) -> dict[str, int]:
    note_call(config)
    os.unlink(os.path.join(config.output_path, ".executor_status.lock"))
    return write_value(config)


def call_exit(config: ToyConfig) -> None:
    sys.exit("not today")


def return_nonsense(config: ToyConfig) -> dict[str, object]:
    return {"value": object()}


def return_much(config: ToyConfig) -> dict[str, str]:
    return {"text": "x" * 3_000_000}


def return_text(config: ToyConfig) -> str:
    return "done"


def leave_nothing(config: ToyConfig) -> None:
    """No file and no result."""


def note_call(config: ToyConfig) -> None:
    with calls_file(config.output_path).open("a") as file:
        file.write(Path(config.output_path).name + "\n")


def calls_file(output_path: str) -> Path:
    """Beside the prefix: `<prefix>/toy/<name>-<hash>` is two levels below it."""
    return Path(output_path).parents[1].with_name("calls.txt")


def calls(prefix: Path) -> list[str]:
    """Names of the outputs whose functions were called, in order."""
    file = prefix.with_name("calls.txt")
    return file.read_text().split() if file.exists() else []


def toy(name: str, fn: object = make, *, reads: Step | InputName | None = None, **fields: object) -> Step:
    """A step named toy/<name>. Fields of the config, and of Step, by name."""
    of_step = {k: fields.pop(k) for k in list(fields) if k in Step.__dataclass_fields__}
    if reads is not None:
        fields["input_path"] = output_path_of(reads)
    config = {k: versioned(v) if k == "value" else v for k, v in fields.items()}
    return Step(name=f"toy/{name}", fn=fn, config=ToyConfig(**config), **of_step)  # type: ignore[arg-type]
