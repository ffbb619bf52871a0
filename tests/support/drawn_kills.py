"""A stage that is killed (SIGKILL) at drawn moments, and run again to its end.

    with stage_runs() as runs:
        require_same_bytes_after_kills(runs, "module:function", "ConfigClass", fields, folder)

A moment is what the store does below the output: a fault point of a file that is written (half, aside) or of a shard
(written, noted), a file that is opened to be written, a rename, a removal, a new folder. They are counted in an
undisturbed run; each kill is at a drawn number of them.

The stages run in children that a process without threads forks, so a run costs no imports.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KILLS = 10
HEAVY = ("numpy", "pyarrow.parquet", "lxml.etree", "zstandard", "py7zr")
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
"""Audit events of changes to folders; `open` is one more."""


class StageRuns:
    """Runs stages in children of one process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, stage: str, config: str, fields: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Run a stage, up to `kill_at` moments if it is given. Returns counts and moments, or {} if it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"stage": stage, "config": config, "fields": dict(fields), **request})
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["status"] in (0, -signal.SIGKILL), answer
        return answer if answer["status"] == 0 else {}


@contextmanager
def stage_runs() -> Iterator[StageRuns]:
    """The process ends with the block."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield StageRuns(process)
    finally:
        process.kill()
        process.communicate()


def require_same_bytes_after_kills(
    runs: StageRuns,
    stage: str,
    config: str,
    fields: Mapping[str, Any],
    folder: Path,
    *,
    seed: int = 1,
    same_counts: bool = True,
    **request: Any,
) -> None:
    """Kill a stage KILLS times, and compare what it ends with to an undisturbed run.

    A run that ends before its moment is compared as well, and the next kill is of another output. `request` has env and
    patches. Counts may differ of a stage whose counts are those of its last attempt.
    """
    run = functools.partial(runs.run, stage, config, **request)
    whole = run({**fields, "output_path": str(folder / "whole")})
    expected = visible_files(folder / "whole")
    assert expected
    draw, kills, number = random.Random(seed), 0, 0
    while True:
        output = folder / f"killed{number}"
        kill_at = draw.randrange(1, max(whole["moments"] // 3, 2)) if kills < KILLS else None
        ended = run({**fields, "output_path": str(output)}, kill_at=kill_at)
        kills += not ended
        if ended:
            assert visible_files(output) == expected
            assert not same_counts or ended["counts"] == whole["counts"]
            if kill_at is None:
                return
            number += 1


def visible_files(folder: Path) -> dict[str, bytes]:
    """The files of an output but those of the store."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".") and "/." not in name}


class Moments:
    """Counts the moments of an output, and kills the process at one of them."""

    def __init__(self, output: str, kill_at: int | None) -> None:
        self.output, self.kill_at, self.count = f"{output}{os.sep}", kill_at, 0

    def reach(self, point: str) -> None:
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and bool((arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        if (is_write or event in CHANGES) and any(self._is_below(place) for place in arguments[:2]):
            self.reach(event)

    def _is_below(self, place: Any) -> bool:
        return isinstance(place, str) and place.startswith(self.output)


def main() -> None:
    for module in HEAVY:
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        importlib.import_module(request["stage"].partition(":")[0])
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _run(request, writer)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"status": status, **(json.loads(text) if text else {})}), flush=True)


def _run(request: dict[str, Any], writer: int) -> None:
    """Run the stage of a request in a child, which ends here."""
    answer: dict[str, Any] = {}
    status = 1
    try:
        answer = _answer(request)
        status = 0
    except BaseException as error:
        answer = {"error": repr(error)}
    finally:
        os.write(writer, json.dumps(answer).encode())
        os._exit(status)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    from marin_assets.step.values import unwrap_versioned_value
    from marin_resources.storage import fault_points

    os.environ.update(request.get("env", {}))
    for place, value in request.get("patches", {}).items():
        module, _, name = place.partition(":")
        setattr(importlib.import_module(module), name, value)
    module, _, name = request["stage"].partition(":")
    stage = importlib.import_module(module)
    config = unwrap_versioned_value(getattr(stage, request["config"])(**request["fields"]))
    moments = Moments(config.output_path, request.get("kill_at"))
    fault_points.reach = moments.reach
    sys.addaudithook(moments.heard)
    counts = getattr(stage, name)(config)
    return {"counts": counts, "moments": moments.count}


if __name__ == "__main__":
    main()
