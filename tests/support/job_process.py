"""Jobs as a cluster starts them, without a cluster: a note, and the process that runs its task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marin_resources.storage.output.notes.job_notes import JobNote, Submitter, create_note, note_path, read_note
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output
from marin_resources.wire.task import Task

ROOT = Path(__file__).parents[2]
X = Output(name="raw/x", version="abc123", identity="a" * 64)
IN_IMAGE = {"mode": "image", "package": None, "root": None, "import_paths": [], "image_root": None}

MAIN = "from marin_resources.ray_tpu.job.entry import main; sys.exit(main(sys.argv[1]))"

STEPS = """
import os, time
from marin_resources.storage.paths import join
from marin_resources.storage.files import write_bytes

def make(config):
    print("making", flush=True)
    write_bytes(join(config["output_path"], "data.txt"), config.get("text", "").encode())
    return {"documents": 3, "threads": os.environ["OMP_NUM_THREADS"]}

def wait(config):
    print("waiting", flush=True)
    while True:
        time.sleep(60)
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job with a note, which has not started."""

    store: Store
    path: str
    """Path of the note."""
    output_path: str
    env: Mapping[str, str]
    folder: Path

    def start(self, prelude: str = "", **environ: str) -> subprocess.Popen[str]:
        """Start its process. `prelude` is Python that runs in it first."""
        start = ["-c", f"import sys\n{prelude}\n{MAIN}"] if prelude else ["-m", "marin_resources.ray_tpu.job"]
        return subprocess.Popen(
            [sys.executable, *start, self.path],
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.env, **environ},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, prelude: str = "", **environ: str) -> tuple[int, str]:
        """Return the exit code and the job's own log."""
        process = self.start(prelude, **environ)
        told, _ = process.communicate()
        return process.returncode, told

    def note(self) -> JobNote:
        note = read_note(self.path)
        assert note is not None
        return note

    def outcome(self) -> Mapping[str, Any]:
        outcome = self.note().outcome
        assert outcome is not None
        return outcome.to_dict()


def new_job(prefix: str, folder: Path, steps: str = STEPS, fn: str = "make", **task: Any) -> Job:
    """Create a job for a function of the script `steps`. Its config has `output_path` and the fields of `config`."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "exp.py"
    script.write_text(steps)
    code, env = task.pop("code", IN_IMAGE), task.pop("environ", {})
    store = Store(prefix)
    path = store.locate(X)
    config = {"output_path": path, **task.pop("config", {})}
    given = {"fn": f"{script}:{fn}", "config": config, "submitted_at": datetime.now(UTC).isoformat(), **task}
    submitted = Task(output=X, prefix=prefix, path=path, run_id="run-1", **given)
    by = Submitter.here("run-1")
    note = JobNote(
        attempt=submitted.attempt,
        submission_id=f"raw-x-abc123-00000000-a{submitted.attempt}",
        dashboard="http://head:8265",
        session="session_1",
        task=submitted,
        code=code,
        submitted_at=datetime.now(UTC).isoformat(),
        by=by,
        owner=by,
    )
    create_note(path, note)
    return Job(store=store, path=note_path(path, submitted.attempt), output_path=path, env=env, folder=folder)


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    """Read the output of the process up to this line."""
    assert process.stdout is not None
    for printed in process.stdout:
        if printed.strip() == line:
            return
    raise AssertionError(f"the process ended before it printed {line!r}")


def terminate(process: subprocess.Popen[str]) -> float:
    """Send SIGTERM, as Ray does, and return the seconds until the end; Ray kills the process after 3."""
    began_s = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    return time.monotonic() - began_s
