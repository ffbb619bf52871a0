"""The schedule of tests names places that exist, and a worker's crash costs one test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import schedule
from schedule import SHARED, SLOW_FOLDERS, WITH_S3, groups_of_files

TESTS = Path(__file__).parents[1]
CRASH = """
import os
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_it(number):
    if {crashes} and number == 1:
        os._exit(1)
"""
PLUGINS = ["-p", "xdist", "-p", "schedule", "--import-mode=importlib", "-n", "3", "--dist", "loadfile"]


def test_files_that_need_the_same_expensive_thing_are_a_group() -> None:
    groups = groups_of_files(TESTS.parent)
    assert set(groups.values()) == SHARED.keys()
    assert groups["tests/stories/test_real_text_becomes_an_evaluated_model.py"] == "quickstart"
    assert groups["tests/stories/test_killed_at_every_step.py"] == "quickstart"
    assert groups["tests/marin_assets/stages/train/test_train_lm.py"] == "jax"


def test_every_place_with_s3_and_every_slow_folder_has_tests() -> None:
    for place in WITH_S3:
        assert [path for path in TESTS.glob(f"{place}*") if path.is_dir() or path.suffix == ".py"], place
    for folder in SLOW_FOLDERS:
        assert list(TESTS.glob(f"**/{folder}/test_*.py")), folder


@pytest.mark.parametrize(("tests", "crashing"), [(3, 15), (2, 0), (2, 29), (3, 0), (3, 29)])
def test_after_the_crash_of_a_worker_every_other_test_is_run_once(tmp_path: Path, tests: int, crashing: int) -> None:
    for file in range(30):
        (tmp_path / f"test_{file:02}.py").write_text(CRASH.format(tests=tests, crashes=file == crashing))
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", *PLUGINS, str(tmp_path)],
            cwd=tmp_path,
            env={**ours, "PYTHONPATH": str(Path(schedule.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
    except subprocess.TimeoutExpired as hung:  # which test each process was in is all that is known of it
        pytest.fail(f"no end after {hung.timeout} s:\n{hung.stdout}")
    assert f"1 failed, {30 * tests - 1} passed" in ended.stdout
    assert f"crashed while running 'test_{crashing:02}.py::test_it[1]'" in ended.stdout
