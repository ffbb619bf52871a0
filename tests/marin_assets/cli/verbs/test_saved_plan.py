"""`marin run --plan FILE` runs what was reviewed, and is refused if it would run anything else."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marin_assets.catalog.script import graph_of_script
from marin_assets.plan.plan_file import FORMAT
from marin_resources.drift import provenance
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output

Marin = Callable[..., tuple[int, str, str]]

SCRIPT = """
from dataclasses import dataclass
from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, expect, output_path_of
from marin_assets import static, this_partition, versioned
from marin_resources.hardware.resources import cpu
import reviewed_part


@dataclass(frozen=True, kw_only=True)
class Config:
    input_path: str = ""
    key: str = ""
    rate: float = versioned(0.1)
    note: str = "old"
    output_path: str = THIS_OUTPUT_PATH


def make(config):
    open(f"{config.output_path}/made.txt", "w").write(reviewed_part.NAME)


first = Step(name="saved/first", fn=make, config=Config())
parts = Step(name="saved/parts", fn=make, config=Config(key=this_partition()), partitions=static("a", "b"))
last = Step(name="saved/last", fn=make, config=Config(input_path=output_path_of(first)))

if __name__ == "__main__":
    executor_main([last, parts])
"""


@pytest.fixture
def script(tmp_path: Path, prefix: Path, dagster_home: Path) -> Iterator[Path]:
    path = tmp_path / "reviewed.py"
    path.write_text(SCRIPT)
    (tmp_path / "reviewed_part.py").write_text("NAME = 'name'\n")
    yield path
    sys.modules.pop("reviewed_part", None)


def edit(path: Path, was: str, now: str) -> None:
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))


def refused(marin: Marin, saved: str) -> str:
    """The sentence of a refusal."""
    code, out, err = marin("run", "--plan", saved, "--dry-run")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            "config=Config())",
            'config=Config(note="new"))',
            "'saved/first': The unversioned field 'note' was 'old' and is 'new' now.",
        ),
        (
            "config=Config(key=this_partition())",
            'config=Config(key=this_partition(), note="new")',
            "'saved/parts[a]': The unversioned field 'note' was 'old' and is 'new' now.",
        ),
        (
            "config=Config())",
            'config=Config(), override_output_path="elsewhere")',
            "The path of 'saved/first' was ",
        ),
        (
            "config=Config())",
            "config=Config(), resources=cpu(0.5))",
            "'saved/first': Its resources.cpus was 1 and is 0.5 now.",
        ),
        (
            "config=Config())",
            'config=Config(), packages=("lxml>=5",))',
            "'saved/first': Its packages.[0] was None and is 'lxml>=5' now.",
        ),
        (
            "config=Config())",
            "config=Config(), timeout_s=5)",
            "'saved/first': Its timeout_s was None and is 5 now.",
        ),
        (
            "config=Config())",
            'config=Config(), expectations=[expect("a", at_least=1)])',
            "'saved/first': Its expectations",
        ),
        ("    open(", "    print(1)\n    open(", "'saved/first': The source of 'reviewed' changed."),
        ("versioned(0.1)", "versioned(0.2)", "The recipe of 'saved/first' is another one."),
    ],
)
def test_a_plan_of_steps_that_would_run_otherwise_is_refused_by_name(
    script: Path, marin: Marin, tmp_path: Path, was: str, now: str, said: str
) -> None:
    saved = str(tmp_path / "plan.json")
    assert marin("plan", str(script), "--save", saved)[0] == 0
    assert marin("run", "--plan", saved, "--dry-run")[0] == 0
    edit(script, was, now)
    assert said in refused(marin, saved)


def test_the_code_of_a_module_that_a_function_uses_is_part_of_the_plan(
    script: Path, marin: Marin, tmp_path: Path
) -> None:
    saved = str(tmp_path / "plan.json")
    marin("plan", str(script), "--save", saved)
    edit(tmp_path / "reviewed_part.py", "NAME = 'name'", "# a comment\nNAME = 'name'")
    assert marin("run", "--plan", saved, "--dry-run")[0] == 0
    edit(tmp_path / "reviewed_part.py", "'name'", "'other'")
    assert "'saved/first': The source of 'reviewed_part' changed." in refused(marin, saved)


def test_another_lock_is_named_once(
    script: Path, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = str(tmp_path / "plan.json")
    marin("plan", str(script), "--save", saved)
    now = {**provenance.environment(), "lock_digest": "another"}
    monkeypatch.setattr("marin_assets.plan.record_facts.facts.environment", lambda: now)
    assert refused(marin, saved).count("The environment's 'uv.lock' changed.") == 1


def test_a_plan_without_configs_is_refused_as_an_earlier_version_has_saved_it(
    script: Path, marin: Marin, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    marin("plan", str(script), "--save", str(saved))
    plan = json.loads(saved.read_text())
    del plan["runs"], plan["sources"]
    saved.write_text(json.dumps(plan))
    assert "as an earlier version has saved it. Plan again." in refused(marin, str(saved))


@pytest.mark.parametrize("damage", [{"runs": 5}, {"runs": [{}]}, {"sources": [1]}, {"runs": [{"step": "a"}]}])
def test_damaged_configs_of_a_plan_are_one_sentence(
    script: Path, marin: Marin, tmp_path: Path, damage: dict[str, object]
) -> None:
    saved = tmp_path / "plan.json"
    marin("plan", str(script), "--save", str(saved))
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **damage}))
    assert repr(str(saved)) in refused(marin, str(saved))


def store_and_output(script: Path, prefix: Path, name: str) -> tuple[Store, Output]:
    graph = graph_of_script(str(script))
    return Store(str(prefix)), next(node.output for node in graph if node.name == name)


def complete(store: Store, output: Output, text: str) -> str:
    claimed = store.claim(output, attempt=1, resumable=False, run_id=None)
    Path(claimed.path, "data.txt").write_text(text)
    store.publish(claimed, {}, {})
    return claimed.path


def test_an_input_that_was_not_selected_is_part_of_the_plan(
    script: Path, marin: Marin, prefix: Path, tmp_path: Path
) -> None:
    saved = str(tmp_path / "plan.json")
    path = complete(*store_and_output(script, prefix, "saved/first"), "one")
    assert marin("plan", str(script), "saved/last", "--save", saved)[0] == 0
    assert marin("run", "--plan", saved, "--dry-run")[0] == 0
    shutil.rmtree(path)
    complete(*store_and_output(script, prefix, "saved/first"), "other")
    assert "'saved/last': The input 'saved/first' was computed again" in refused(marin, saved)


def test_a_step_that_failed_again_was_not_computed_again(
    script: Path, marin: Marin, prefix: Path, tmp_path: Path
) -> None:
    saved = str(tmp_path / "plan.json")
    store, output = store_and_output(script, prefix, "saved/first")
    store.fail(store.claim(output, attempt=1, resumable=False, run_id=None), {}, "ValueError: no", "")
    assert marin("plan", str(script), "saved/first", "--save", saved)[0] == 0
    assert marin("run", "--plan", saved, "--dry-run")[0] == 0
    store.fail(store.claim(output, attempt=2, resumable=False, run_id=None), {}, "ValueError: no", "")
    assert "'saved/first' was tried again, and failed, at 2" in refused(marin, saved)


def test_a_source_is_saved_once(script: Path, marin: Marin, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    marin("plan", str(script), "--save", str(saved))
    plan = FORMAT.parse(saved.read_bytes(), str(saved))
    assert (len(plan["runs"]), len(plan["sources"])) == (4, 1)
