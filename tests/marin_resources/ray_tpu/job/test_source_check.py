"""Whether the code on a node is the submitter's."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marin_resources.drift.source_digest import read_source
from marin_resources.ray_tpu.job.source_check import SourceMismatchError, check_source

FILES = {
    "lab/__init__.py": "",
    "lab/steps.py": "from lab.words import split\nimport beside\n\ndef count(config):\n    return split(config)\n",
    "lab/words.py": "def split(text):\n    return text.split()\n",
    "beside.py": "VALUE = 1\n",
    "exp.py": "import beside\nfrom lab.words import split\n\ndef run(config):\n    return split(config)\n",
}


def write(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write(tmp_path / "there")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, from which this process would import, and has imported nothing."""
    folder = write(tmp_path / "here")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return folder


def recorded(folder: Path, reference: str = "exp.py:run") -> dict[str, Any]:
    """As the submitter records it."""
    source = read_source([f"{folder}/{reference}"], lambda module: True)
    assert source is not None
    return source


def test_the_same_code_elsewhere_passes(there: Path, here: Path) -> None:
    source = recorded(there)
    assert set(source["modules"]) == {"exp", "beside", "lab", "lab.words"}
    check_source(source, [f"{here}/exp.py:run"])


def test_a_module_by_its_name_is_looked_for_where_it_would_be_imported_from(there: Path, here: Path) -> None:
    source = recorded(there, "lab/steps.py:count")
    assert "lab.steps" in source["modules"]
    check_source(source, ["lab.steps:count"])
    assert "lab.steps" not in sys.modules


def test_comments_and_layout_do_not_count(there: Path, here: Path) -> None:
    source = recorded(there)
    (here / "lab/words.py").write_text('"""Words."""\ndef split(text):\n    # all of them\n    return text.split()\n')
    check_source(source, [f"{here}/exp.py:run"])


def test_a_module_that_differs_is_refused_with_both_sides_and_what_to_do(there: Path, here: Path) -> None:
    source = recorded(there)
    (here / "lab/words.py").write_text("def split(text):\n    return list(text)\n")
    with pytest.raises(SourceMismatchError) as raised:
        check_source(source, [f"{here}/exp.py:run"])
    theirs, ours = source["modules"]["lab.words"][:8], recorded(here)["modules"]["lab.words"][:8]
    assert str(raised.value) == (
        f"The code in this node's image is not the submitter's: 'lab.words' was {theirs} at the submitter and is "
        f"{ours} in '{here}/lab/words.py' here. Submit from the code that is in the image, or set "
        "MARIN_CLUSTER_CODE=ship."
    )


def test_a_module_that_is_missing_is_named(there: Path, here: Path) -> None:
    source = recorded(there)
    (here / "beside.py").unlink()
    with pytest.raises(SourceMismatchError, match=r"'beside' was [0-9a-f]{8} at the submitter and is missing here\."):
        check_source(source, [f"{here}/exp.py:run"])


def test_three_are_named_and_the_others_counted(there: Path, here: Path) -> None:
    source = recorded(there)
    shutil.rmtree(here)
    write(here, {"exp.py": "def run(config):\n    return 0\n"})
    with pytest.raises(SourceMismatchError, match=r"'beside' .*, 'exp' .*, 'lab' was .* is missing here and 1 more"):
        check_source(source, [f"{here}/exp.py:run"])


def test_where_nothing_was_recorded_there_is_nothing_to_compare(here: Path) -> None:
    check_source(None, [f"{here}/exp.py:run"])
    check_source({}, [f"{here}/exp.py:run"])


def test_a_step_of_this_checkout_is_checked_without_an_import_of_it() -> None:
    """In a fresh process, as a job's is. What differs in nothing is not parsed."""
    import marin_assets.stages.transform.ingest

    reference = f"{marin_assets.stages.transform.ingest.__name__}:ingest"
    source = read_source([reference], lambda module: True)
    assert source is not None
    code = (
        "import sys, json, marin_resources.drift.source_file as s\n"
        "s._parse = None\n"
        "from marin_resources.ray_tpu.job.source_check import check_source\n"
        "check_source(json.load(sys.stdin), ['marin_assets.stages.transform.ingest:ingest'])\n"
        "assert 'marin_assets' not in sys.modules\n"
    )
    import json

    root = Path(__file__).parents[4]
    env = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", code], input=json.dumps(source), text=True, env=env, check=True)
