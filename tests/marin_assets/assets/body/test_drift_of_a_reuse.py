"""A reuse says what has changed since the output was made, in the run's log and on the asset's page, and reuses."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from running import reused, run_job, run_steps
from toy_steps import calls, toy

from marin_assets import Step
from marin_assets.assets.assemble import resources
from marin_assets.assets.factory import build_assets
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.record_facts.facts import counts, manifest_digest
from marin_assets.plan.record_facts.node_drift import input_digests
from marin_assets.step.graph import build_graph
from marin_resources.drift.source_modules import Modules, module_of
from marin_resources.orchestrator.executor import marin_executor
from marin_resources.storage.output.store import Store

pytestmark = pytest.mark.usefixtures("shared_ray", "prefix")
ROOT = Path(__file__).parents[4]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of one's own: a function that writes the config's note, and a module that it imports."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "drifting_part.py").write_text("NAME = 'note.txt'\n")
    (folder / "drifting_work.py").write_text(
        "from pathlib import Path\nimport drifting_part\n\n"
        "def write_note(config):\n    Path(config.output_path, drifting_part.NAME).write_text(config.note)\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("drifting_part", "drifting_work"):
        sys.modules.pop(name, None)


class Page:
    """What Dagster shows of the last materialization of one step."""

    def __init__(self, result: Any, name: str, instance: dg.DagsterInstance) -> None:
        [event] = [e for e in result.get_asset_materialization_events() if e.asset_key.to_user_string() == name]
        self.metadata = event.materialization.metadata
        self.tags = event.materialization.tags
        assert reused(result)[name]
        messages = [entry.user_message for entry in instance.all_logs(result.run_id)]
        [self.line] = [message for message in messages if message.startswith(f"{name}: reused ")]

    @property
    def drift(self) -> list[str]:
        return self.metadata["drift"].value.splitlines() if "drift" in self.metadata else []


def run(*steps: Step, instance: dg.DagsterInstance) -> Any:
    result = run_steps(steps, instance)
    assert result.success
    return result


def edit_record(prefix: Path, name: str, **fields: Any) -> None:
    """Make the record one that was written under other circumstances."""
    [path] = prefix.glob(f"{name}-*/.executor_info")
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def dry_run_line(*steps: Step, prefix: Path) -> str:
    graph = build_graph(steps)
    return prepare_plan(graph, Store(str(prefix)), [graph[steps[-1]]])[0].reason


def test_what_has_not_changed_is_no_drift_and_makes_no_noise(prefix: Path, instance: dg.DagsterInstance) -> None:
    steps = (toy("in"), toy("out", reads=toy("in")))
    run(*steps, instance=instance)
    page = Page(run(*steps, instance=instance), "toy/out", instance)
    assert page.line.endswith(f"reused {page.metadata['path'].value}")
    assert not [name for name in (*page.metadata, *page.tags) if "drift" in name]
    assert dry_run_line(*steps, prefix=prefix) == "complete"


def test_an_unversioned_field_that_changed_is_named_and_nothing_runs(
    prefix: Path, instance: dg.DagsterInstance
) -> None:
    run(toy("a", note="old"), instance=instance)
    page = Page(run(toy("a", note="new"), instance=instance), "toy/a", instance)
    assert page.line.endswith("; since it was computed, the unversioned field 'note' ('old', now 'new') changed")
    assert page.drift == ["- The unversioned field 'note' was 'old' and is 'new' now."]
    assert (page.metadata["drift_count"].value, page.tags["marin/drift"]) == (1, "true")
    assert len(calls(prefix)) == 1
    assert dry_run_line(toy("a", note="new"), prefix=prefix) == (
        "complete; since it was computed, the unversioned field 'note' ('old', now 'new') changed"
    )


def test_a_changed_source_is_named_by_its_module_and_a_comment_is_no_change(
    code: Path, instance: dg.DagsterInstance
) -> None:
    step = toy("a", importlib.import_module("drifting_work").write_note)
    run(step, instance=instance)
    (code / "drifting_part.py").write_text('"""Words."""\n\n# where\nNAME = (\n    "note.txt"\n)\n')
    assert Page(run(step, instance=instance), "toy/a", instance).drift == []
    (code / "drifting_part.py").write_text("NAME = 'other.txt'\n")
    page = Page(run(step, instance=instance), "toy/a", instance)
    assert page.line.endswith("; since it was computed, the source of 'drifting_part' changed")
    assert page.drift == ["- The source of 'drifting_part' changed."]


def test_an_input_that_was_made_again_with_other_content_is_named(
    prefix: Path, code: Path, instance: dg.DagsterInstance
) -> None:
    def steps(note: str) -> tuple[Step, Step]:
        first = toy("in", importlib.import_module("drifting_work").write_note, note=note)
        return first, toy("out", reads=first)

    run(*steps("short"), instance=instance)
    [folder] = prefix.glob("toy/in-*")
    shutil.rmtree(folder)
    result = run(*steps("much longer"), instance=instance)
    assert reused(result) == {"toy/in": False, "toy/out": True}
    page = Page(result, "toy/out", instance)
    assert page.line.endswith("; since it was computed, the input 'toy/in' changed")
    assert page.drift == ["- The input 'toy/in' was computed again, and its content differs from the one read."]
    assert Page(run_alone(steps("much longer")[1], instance), "toy/out", instance).drift == page.drift
    assert dry_run_line(*steps("much longer"), prefix=prefix).endswith("the input 'toy/in' changed")


@pytest.mark.long
def test_an_input_that_is_gone_reports_nothing_of_what_was_read(prefix: Path, instance: dg.DagsterInstance) -> None:
    steps = (toy("in"), toy("out", reads=toy("in")))
    run(*steps, instance=instance)
    [folder] = prefix.glob("toy/in-*")
    shutil.rmtree(folder)
    assert Page(run_alone(steps[1], instance), "toy/out", instance).drift == []


def test_a_run_looks_at_an_input_once(prefix: Path, instance: dg.DagsterInstance) -> None:
    run(toy("out", reads=toy("in")), instance=instance)
    graph, store = build_graph([toy("out", reads=toy("in"))]), Store(str(prefix))
    first, last = graph
    observed = store.look(node.output for node in graph)
    known = {first.output: manifest_digest(observed[first.output])}
    shutil.rmtree(observed[first.output].path)
    [digest] = input_digests(last, store, observed[last.output], known).values()
    assert digest == observed[last.output].record.to_dict()["inputs"]["toy/in"]
    assert input_digests(last, store, observed[last.output], {}) == {"toy/in": None}


def test_another_lock_than_the_one_it_was_made_with_is_reported(prefix: Path, instance: dg.DagsterInstance) -> None:
    run(toy("a"), instance=instance)
    edit_record(prefix, "toy/a", environment={"lock_digest": "another", "python": "3.9.1"})
    page = Page(run(toy("a"), instance=instance), "toy/a", instance)
    python, lock = page.drift
    assert python.startswith("- The environment's 'Python' was '3.9' and is '3.")
    assert lock == "- The environment's 'uv.lock' changed."


@pytest.mark.long
def test_a_prefix_that_was_moved_is_no_drift(
    prefix: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (toy("in"), toy("out", reads=toy("in"), gate="/somewhere/else"))
    run(*steps, instance=instance)
    moved = prefix.with_name("moved")
    prefix.rename(moved)
    monkeypatch.setenv("MARIN_PREFIX", str(moved))
    page = Page(run(*steps, instance=instance), "toy/out", instance)
    assert page.metadata["path"].value.startswith(str(moved))
    assert page.drift == []


@pytest.mark.long
def test_an_older_record_says_what_it_cannot_tell(prefix: Path, instance: dg.DagsterInstance) -> None:
    run(toy("a"), instance=instance)
    edit_record(prefix, "toy/a", source_digest=None)
    page = Page(run(toy("a"), instance=instance), "toy/a", instance)
    assert page.drift == []
    assert page.metadata["drift_unknown"].value == "its record does not say enough of: source"


@pytest.mark.long
def test_every_module_that_a_stage_works_with_counts() -> None:
    packages = [ROOT / "marin_assets" / name for name in ("stages", "documents", "inference")]
    for path in (path for package in packages for path in package.rglob("*.py")):
        start = module_of(f"{path}:any")
        assert start is not None
        reached = Modules([start]).closure(lambda module: counts(module) or module.name.count(".") == 1)
        left_out = {module.name for module in reached if not counts(module) and module is not start}
        assert left_out <= {"marin_assets.step"}, f"{path.name} imports what drift does not see: {left_out}"


def run_alone(step: Step, instance: dg.DagsterInstance) -> Any:
    """A run of this step without what it reads."""
    job = dg.define_asset_job("alone", dg.AssetSelection.assets(step.name.split("/")))
    definitions = dg.Definitions(
        assets=build_assets(build_graph([step])), jobs=[job], resources=resources(), executor=marin_executor
    )
    result = run_job(definitions, "alone", instance)
    assert reused(result).keys() == {step.name}
    return result
