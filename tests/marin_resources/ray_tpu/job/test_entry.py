"""The process of a job: from its note to the outcome in it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import one_output
import pytest
from job_process import IN_IMAGE, STEPS, X, new_job
from record_fields import fields_of_record
from wheels import only_from, wheel

from marin_resources.drift.source_digest import read_source
from marin_resources.hardware.resources import cpu, gpu
from marin_resources.storage.control import control
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.notes.job_notes import add_ended, add_outcome, add_stop
from marin_resources.storage.output.status import read_status
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Status
from marin_resources.wire.outcome import End, Outcome


def status_of(prefix: str) -> Status | None:
    return read_status(Store(prefix).locate(X))


def record_of(prefix: str) -> dict[str, Any]:
    record = fields_of_record(Store(prefix).locate(X))
    assert record is not None
    return record


def test_a_job_makes_the_output_and_completes_its_note(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code", config={"text": "data"}, resources=cpu(2.5))
    code, told = job.run()
    assert code == 0, told
    assert job.outcome()["end"] == "success"
    assert status_of(disk_prefix) is Status.SUCCESS
    assert one_output.read(job.output_path, "data.txt") == "data"
    record = record_of(disk_prefix)
    assert record["result"] == {"documents": 3, "threads": "2"}
    assert record["job"] == {"id": "raw-x-abc123-00000000-a1", "dashboard": "http://head:8265", "code": IN_IMAGE}
    assert set(record["timing"]) == {"queue_s", "setup_s", "compute_s"}
    assert 0 <= record["timing"]["compute_s"] < record["timing"]["setup_s"] < 30


def test_the_jobs_own_log_holds_the_attempts_log_after_a_line_that_says_so(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code")
    _, told = job.run()
    log = log_path(job.output_path, 1)
    assert told.partition(f"--- marin: attempt 1, its log is {log} ---\n")[2] == Path(log).read_text() == "making\n"


def test_a_function_that_raises_is_reported_with_its_traceback(disk_prefix: str, tmp_path: Path) -> None:
    steps = "def make(config):\n    raise ValueError('the value 3 is not liked')\n"
    job = new_job(disk_prefix, tmp_path / "code", steps)
    code, told = job.run()
    assert code == 1
    outcome = job.outcome()
    assert (outcome["end"], outcome["error"]) == ("failed", "ValueError: the value 3 is not liked")
    assert "in make" in outcome["traceback"]
    assert "worker.py" not in outcome["traceback"]
    assert status_of(disk_prefix) is Status.FAILED
    assert told.endswith("failed: ValueError: the value 3 is not liked\n")


def test_an_output_that_is_complete_by_now_is_left_alone(disk_prefix: str, tmp_path: Path) -> None:
    one_output.make(Store(disk_prefix), X)
    job = new_job(disk_prefix, tmp_path / "code", attempt=2)
    assert job.run()[0] == 0
    assert job.outcome()["end"] == "already_done"


def test_an_output_that_another_makes_is_reported_with_who_it_is(disk_prefix: str, tmp_path: Path) -> None:
    held = one_output.claim(Store(disk_prefix), attempt=1, what=X)
    job = new_job(disk_prefix, tmp_path / "code", attempt=2)
    assert job.run()[0] == 0
    held.lease.release()
    assert job.outcome()["end"] == "held"
    assert job.outcome()["holder"]["attempt"] == 1


@pytest.mark.parametrize("why", ["stop", "ended", "outcome"])
def test_a_job_whose_note_is_closed_claims_nothing(why: str, disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code")
    says = {
        "stop": (
            lambda: add_stop(job.path, "ann", "the run was terminated."),
            "stopped by ann: the run was terminated",
        ),
        "ended": (
            lambda: add_ended(job.path, "was never submitted"),
            "attempt 1 was abandoned, as its cluster job was never",
        ),
        "outcome": (
            lambda: add_outcome(job.path, Outcome(end=End.FAILED)),
            "attempt 1 has ended already, as 'failed'",
        ),
    }
    act, sentence = says[why]
    act()
    before = job.note()
    code, told = job.run()
    assert code == 0
    assert told.startswith(f"This job does nothing: {sentence}")
    assert status_of(disk_prefix) is None
    assert job.note() == before


def test_a_job_without_a_note_says_so(tmp_path: Path, disk_prefix: str) -> None:
    job = dataclasses.replace(new_job(disk_prefix, tmp_path / "code"), path=str(tmp_path / "7.json"))
    code, told = job.run()
    assert code == 1
    assert told == f"The note of this job, '{tmp_path}/7.json', does not exist. Materialize the step again.\n"


def test_secrets_reach_the_function_and_nothing_that_it_leaves(disk_prefix: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "LAB_TOKEN").write_text("hunter2-hunter2\n")
    steps = (
        "import os\n"
        "def make(config):\n"
        "    token = os.environ['LAB_TOKEN']\n"
        "    print('got', token, flush=True)\n"
        "    if config.get('fail'):\n"
        "        raise ValueError(f'{token} is refused')\n"
        "    return {'length': len(token), 'token': token}\n"
    )
    environ = {"MARIN_SECRETS_DIR": str(tmp_path / "secrets")}
    job = new_job(disk_prefix, tmp_path / "code", steps, env=("LAB_TOKEN",), environ=environ, config={"fail": True})
    _, failed = job.run()
    assert job.outcome()["error"] == "ValueError: *** is refused"
    again = new_job(disk_prefix, tmp_path / "code", steps, env=("LAB_TOKEN",), environ=environ, attempt=2)
    code, told = again.run()
    assert code == 0, told
    assert record_of(disk_prefix)["result"] == {"length": 15, "token": "***"}
    assert "got ***" in told
    left = [file.read_bytes() for file in Path(disk_prefix).rglob("*") if file.is_file()]
    assert not any(b"hunter2" in each for each in [*left, failed.encode(), told.encode()])


def test_a_secret_that_is_nowhere_is_reported_and_nothing_is_claimed(disk_prefix: str, tmp_path: Path) -> None:
    environ = {"MARIN_SECRETS_DIR": str(tmp_path), "MARIN_SECRETS_PROJECT": ""}
    job = new_job(disk_prefix, tmp_path / "code", env=("NO_SUCH_SECRET",), environ=environ)
    code, told = job.run()
    assert code == 1
    assert job.outcome()["error"].startswith("The variable 'NO_SUCH_SECRET' is not set on this node")
    assert job.outcome()["error"] in told
    assert status_of(disk_prefix) is None


def test_a_package_beyond_the_environment_can_be_imported(disk_prefix: str, tmp_path: Path) -> None:
    wheel(tmp_path / "index", "marin-tiny", "1.5")
    steps = "import marin_tiny\ndef make(config):\n    return {'version': marin_tiny.version}\n"
    job = new_job(disk_prefix, tmp_path / "code", steps, packages=("marin-tiny",))
    code, told = job.run(**only_from(tmp_path / "index", tmp_path / "cache"))
    assert code == 0, told
    assert record_of(disk_prefix)["result"] == {"version": "1.5"}


def test_code_that_is_not_the_submitters_is_refused_before_anything_is_claimed(
    disk_prefix: str, tmp_path: Path
) -> None:
    job = new_job(disk_prefix, tmp_path / "code")
    source = read_source([f"{tmp_path}/code/exp.py:make"], lambda module: True)
    other = new_job(disk_prefix, tmp_path / "code", facts={"source_digest": source}, attempt=2)
    assert job.run()[0] == 0
    (tmp_path / "code" / "exp.py").write_text(f"{STEPS}\nX = 1\n")
    code, _ = other.run()
    assert code == 1
    assert other.outcome()["error"].startswith("The code in this node's image is not the submitter's: 'exp'")


def test_shipped_code_is_not_compared_with_the_submitters(disk_prefix: str, tmp_path: Path) -> None:
    source = {"modules": {"exp": "0" * 64}, "files_digest": "0" * 64}
    job = new_job(disk_prefix, tmp_path, facts={"source_digest": source}, code={**IN_IMAGE, "mode": "ship"})
    assert job.run()[0] == 0
    assert job.outcome()["end"] == "success"


def test_a_step_whose_shipped_code_is_removed_under_it_has_lost_its_worker(disk_prefix: str, tmp_path: Path) -> None:
    steps = "import os, shutil\ndef make(config):\n    shutil.rmtree(os.getcwd())\n    import beside\n"
    job = new_job(disk_prefix, tmp_path / "code", steps, code={**IN_IMAGE, "mode": "ship"})
    assert job.run()[0] == 1
    assert job.outcome()["end"] == "lost"
    assert job.outcome()["error"].startswith("its code is gone from its node: ModuleNotFoundError: No module named 'be")


def test_a_shipped_script_is_found_in_the_jobs_working_directory(disk_prefix: str, tmp_path: Path) -> None:
    """The submitter's folder is not there; the job starts in a copy of it. Its classes are named by the script, too."""
    root = tmp_path / "submitter"
    code = {**IN_IMAGE, "mode": "ship", "root": str(root), "import_paths": ["src"]}
    steps = (
        "from dataclasses import dataclass\n"
        "import beside\n"
        "@dataclass(frozen=True)\n"
        "class Config:\n"
        "    n: int\n"
        "def make(config):\n"
        "    assert type(config) is Config\n"
        "    return {'n': config.n, 'beside': beside.VALUE}\n"
    )
    config = {"$dataclass": f"{root}/exp.py:Config", "n": 3}
    job = new_job(disk_prefix, root, steps, config=config, code=code)
    drop_output_path(job.path)
    (root / "src").mkdir()
    (root / "src" / "beside.py").write_text("VALUE = 4\n")
    root.rename(tmp_path / "unpacked")
    exit_code, told = dataclasses.replace(job, folder=tmp_path / "unpacked").run()
    assert exit_code == 0, told
    assert record_of(disk_prefix)["result"] == {"n": 3, "beside": 4}


def drop_output_path(path: str) -> None:
    seen = control.read(path)
    assert seen is not None
    fields = json.loads(seen.data)
    del fields["task"]["config"]["output_path"]
    control.write(path, json.dumps(fields).encode(), expected=seen.generation)


def test_a_step_for_a_device_is_handed_on_with_its_note(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code", resources=gpu())
    handed = (
        "import types, json\n"
        "from marin_resources.wire.outcome import End, Outcome\n"
        "fake = types.ModuleType('on_hosts')\n"
        "fake.run_on_hosts = lambda note: Outcome(\n"
        '    end=End.LOST, error=f"{note.task.resources.gpu.count} GPU, {note.submission_id}")\n'
        "sys.modules['marin_resources.ray_tpu.job.on_hosts'] = fake\n"
    )
    assert job.run(handed)[0] == 1
    assert job.outcome()["end"] == "lost"
    assert job.outcome()["error"] == "1 GPU, raw-x-abc123-00000000-a1"


def test_a_store_that_is_away_for_a_while_is_asked_again(gcs_prefix: str, tmp_path: Path) -> None:
    """Before the work and after it: each first two requests about the note fail."""
    job = new_job(gcs_prefix, tmp_path / "code")
    away = (
        "from marin_resources.storage.control import control\n"
        "from marin_resources.storage.control.protocol import UnavailableError\n"
        "from marin_resources.ray_tpu.job import retry\n"
        "def away_at_first(act):\n"
        "    asked = []\n"
        "    def sometimes(path, *args, **kwargs):\n"
        "        if '/jobs/' in path and len(asked) < 2:\n"
        "            asked.append(path)\n"
        "            raise UnavailableError('The store is away.')\n"
        "        return act(path, *args, **kwargs)\n"
        "    return sometimes\n"
        "control.read, control.write = away_at_first(control.read), away_at_first(control.write)\n"
        "retry.RETRY_PAUSE_S = 0.01\n"
    )
    code, told = job.run(away)
    assert code == 0, told
    retry = "The store is away. Retrying in 0.01 s.\n" * 2
    assert told.startswith(retry)
    assert told.endswith(f"making\n{retry}")
    assert job.outcome()["end"] == "success"


def test_an_outcome_that_cannot_be_added_to_the_note_is_in_the_jobs_log(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code")
    gone = "import os\nfrom marin_resources.ray_tpu.job import run_step\nrun = run_step.run\n"
    gone += "run_step.run = lambda *given: (run(*given), os.unlink(sys.argv[1]))[0]\n"
    code, told = job.run(gone)
    assert code == 1
    assert f"The outcome 'success' cannot be added to the note: The job note {job.path!r} does not exist" in told
    assert status_of(disk_prefix) is Status.SUCCESS


def test_a_function_that_takes_too_long_ends_with_its_process(disk_prefix: str, tmp_path: Path) -> None:
    job = new_job(disk_prefix, tmp_path / "code", fn="wait", timeout_s=0.3)
    code, told = job.run()
    assert code == -9
    assert "in wait" in told
    outcome = job.outcome()
    assert (outcome["end"], outcome["error"]) == ("failed", "the function took longer than its 0.3 s")
    assert status_of(disk_prefix) is Status.FAILED
    assert read_attempt(job.output_path, 1)["outcome"] == "failed"
    record = record_of(disk_prefix)
    assert record["error"] == outcome["error"]
    assert 0 < record["timing"]["compute_s"] < 3  # counted from a little after the limit is: 0.287 s on a busy machine


def test_threads_that_a_function_leaves_do_not_keep_the_job(disk_prefix: str, tmp_path: Path) -> None:
    steps = "import threading, time\ndef make(config):\n    threading.Thread(target=time.sleep, args=(600,)).start()\n"
    job = new_job(disk_prefix, tmp_path / "code", steps)
    assert job.run("from marin_resources.ray_tpu.job import entry\nentry.EXIT_TIMEOUT_S = 0.1")[0] == 0
    assert job.outcome()["end"] == "success"


def test_it_starts_without_what_takes_long_to_load(disk_prefix: str, tmp_path: Path) -> None:
    steps = (
        "import sys\n"
        "HEAVY = ('dagster', 'ray', 'pandas', 'numpy', 'gcsfs', 's3fs', 'aiohttp', 'requests')\n"
        "def make(config):\n"
        "    return {'loaded': [name for name in HEAVY if name in sys.modules]}\n"
    )
    assert new_job(disk_prefix, tmp_path / "code", steps).run()[0] == 0
    assert record_of(disk_prefix)["result"] == {"loaded": []}
