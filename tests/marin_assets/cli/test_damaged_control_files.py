"""One finding, and the rest lives: every control file with every damage, as each command sees it.

All damaged outputs of a state are below one prefix, beside a healthy one. So each command runs once, and the tests look
at what it said of each output.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import damage
import pytest
from object_stores import forget, gcs_prefix
from running import reused, run_steps
from toy_steps import make, toy

import marin_assets.experiments
from marin_assets import Step
from marin_assets.assets.body.request import build_request, build_task
from marin_assets.assets.checks import check_results
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.cli.main import main
from marin_assets.step.graph import Graph, Node, build_graph
from marin_resources.dagster_fixes.console import failure_sentence
from marin_resources.orchestrator.produce import Produced, ProduceError, RunCallbacks, produce
from marin_resources.ray_tpu.local.backend import Handle, LocalBackend
from marin_resources.storage.control.control import put
from marin_resources.storage.files import write_bytes
from marin_resources.storage.lease.protocol import LeaseHeldError
from marin_resources.storage.output.notes.job_notes import JobNote, Submitter, create_note, first_free_attempt
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.transfer_log import Ledger, Moved
from marin_resources.types.errors import MarinError
from marin_resources.wire.task import Task

EVERYWHERE = [(file, kind) for file in damage.FILES for kind in damage.DAMAGES if (file, kind) != ("lease", "newer")]
IN_A_BUCKET = [(file, kind) for file in ("status", "record", "manifest", "mark") for kind in ("cut", "deeper", "empty")]
SOUND = "sound"


def steps(cells: list[tuple[str, str]]) -> list[Step]:
    return [toy(name, make, note="mirror://raw/words", resumable=True) for name in (SOUND, *map("-".join, cells))]


@dataclass
class World:
    """Outputs in one state, each with one damaged file, and what the commands said of them."""

    store: Store
    graph: Graph
    complete: bool
    damaged: dict[str, str] = field(default_factory=dict)
    """Name of a step -> path of its damaged file."""
    codes: dict[str, int] = field(default_factory=dict)
    verified: dict[str, dict] = field(default_factory=dict)
    printed: dict[str, list[str]] = field(default_factory=dict)
    """Name of a command -> lines."""

    def node(self, name: str) -> Node:
        return next(node for node in self.graph if node.name == f"toy/{name}")

    def path(self, name: str) -> str:
        return self.store.locate(self.node(name).output)

    def begin(self, node: Node) -> None:
        """One attempt, complete or failed, with all control files."""
        claim = self.store.claim(node.output, attempt=1, resumable=True, run_id=None)
        task = build_task(node, self.graph, self.store, 1, {}, None)
        write_bytes(join(claim.path, "value.txt"), b"1")
        if self.complete or node.name == f"toy/{SOUND}":
            self.store.publish(claim, task.facts, {"value": 1})
        else:
            self.store.fail(claim, task.facts, "ValueError: no", "Traceback …")
        me = Submitter.here(None)
        at = {"submission_id": "x", "dashboard": "http://x", "session": "x", "submitted_at": "x"}
        create_note(claim.path, JobNote(attempt=2, task=task, code={}, by=me, owner=me, ended="was lost", **at))
        moved = Moved(path="mirror://raw/words", origin="there", to="here", bytes=1, dollars=0)
        put(join(claim.path, damage.FILES["ledger"]), Ledger(moved=[moved]).to_json().encode())
        put(join(claim.path, damage.FILES["lease"]), b'{"worker_id": "free was=x", "timestamp": 0}')


def world_of(prefix: str, complete: bool, cells: list[tuple[str, str]], capsys_run: Callable) -> World:
    world = World(Store(prefix), build_graph(steps(cells)), complete)
    for node in world.graph:
        world.begin(node)
    for cell in cells:
        world.damaged["-".join(cell)] = damage.damage(world.path("-".join(cell)), *cell)
    for command in ("verify", "verify --json", "materialize * --dry-run"):
        code, out, err = capsys_run(command.split(), prefix)
        assert "Traceback" not in out + err
        world.codes[command], world.printed[command] = code, (out + err).splitlines()
    outputs = json.loads("\n".join(world.printed["verify --json"]))["outputs"]
    world.verified = {of["step"].removeprefix("toy/"): of for of in outputs}
    return world


@pytest.fixture(scope="module")
def run_marin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable]:
    """A command line in this process, with the steps of the cells as the only experiment."""
    folder = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marin_assets.experiments, "__path__", [str(folder)])

        def run(arguments: list[str], prefix: str) -> tuple[int, str, str]:
            patch.setenv("MARIN_PREFIX", prefix)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(arguments)
            return code, out.getvalue(), err.getvalue()

        def experiment(name: str, cells: list[tuple[str, str]]) -> Callable:
            for file in folder.glob("*.py"):
                file.unlink()
            text = f"import test_damaged_control_files as here\n\ndef steps():\n    return here.steps({cells!r})\n"
            (folder / f"{name}.py").write_text(text)
            return run

        patch.setitem(sys.modules, "test_damaged_control_files", sys.modules[__name__])
        yield experiment


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory, run_marin: Callable) -> World:
    prefix = str(tmp_path_factory.mktemp("complete"))
    return world_of(prefix, True, EVERYWHERE, run_marin("complete", EVERYWHERE))


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory, run_marin: Callable) -> World:
    prefix = str(tmp_path_factory.mktemp("failed"))
    return world_of(prefix, False, EVERYWHERE, run_marin("failed", EVERYWHERE))


@pytest.fixture(scope="module")
def in_a_bucket(run_marin: Callable) -> Iterator[World]:
    prefix = gcs_prefix()
    yield world_of(prefix, True, IN_A_BUCKET, run_marin("in_a_bucket", IN_A_BUCKET))
    forget(prefix)


every_cell = pytest.mark.parametrize(("file", "kind"), EVERYWHERE)


def harmless_when_complete(file: str, kind: str) -> bool:
    """The data and their manifest are as published, and no file that exists is damaged."""
    gone = kind == "absent" or (file == "lease" and kind == "empty")
    return gone and file not in ("status", "manifest")


@every_cell
def test_verify_finds_the_damage_of_a_complete_output(complete: World, file: str, kind: str) -> None:
    expect_verified(complete, file, kind)


@pytest.mark.parametrize(("file", "kind"), IN_A_BUCKET)
def test_verify_finds_the_damage_in_a_bucket(in_a_bucket: World, file: str, kind: str) -> None:
    expect_verified(in_a_bucket, file, kind)


def expect_verified(world: World, file: str, kind: str) -> None:
    name = f"{file}-{kind}"
    told = world.verified[name]
    if harmless_when_complete(file, kind):
        assert told["state"] == "right"
        return
    assert told["state"] == "wrong"
    [finding] = told["findings"]
    assert damage.FILES[file] in finding["name"] + finding["found"]
    lost_status = file == "status" and kind in ("absent", "empty")
    if not lost_status and kind != "absent":
        assert world.damaged[name] in finding["found"]
        assert finding["found"].endswith(".")
    data_are_right = file in ("lease", "mark", "note", "ledger") or lost_status
    assert ("rerun" in told) is not data_are_right
    assert (finding["problem"] == "damaged") is data_are_right


def test_verify_says_1_and_keeps_the_neighbours_decision(complete: World, failed: World, in_a_bucket: World) -> None:
    for world in (complete, failed, in_a_bucket):
        assert world.codes["verify"] == world.codes["verify --json"] == 1
        assert world.verified[SOUND]["state"] == "right"


@every_cell
def test_verify_finds_what_hides_the_state_of_an_incomplete_output(failed: World, file: str, kind: str) -> None:
    told = failed.verified[f"{file}-{kind}"]
    hides = (file in ("status", "record") and kind not in ("absent", "empty")) or (file, kind) == ("record", "empty")
    hides = hides or (file == "lease" and kind in ("folder", "fifo"))
    if not hides:
        assert told["state"] == "not there"
        return
    [finding] = told["findings"]
    assert (told["state"], failed.damaged[f"{file}-{kind}"] in finding["found"]) == ("wrong", True)


def planned(world: World, name: str) -> tuple[str, str]:
    """The action of a step, and its reason."""
    lines = world.printed["materialize * --dry-run"]
    [place] = [i for i, line in enumerate(lines) if line.endswith(f" {world.path(name)}")]
    return lines[place].split()[0], lines[place + 1].strip()


@every_cell
def test_a_dry_run_says_what_a_run_does_with_a_complete_output(complete: World, file: str, kind: str) -> None:
    expect_planned(complete, file, kind)


@pytest.mark.parametrize(("file", "kind"), IN_A_BUCKET)
def test_a_dry_run_says_what_a_run_does_in_a_bucket(in_a_bucket: World, file: str, kind: str) -> None:
    expect_planned(in_a_bucket, file, kind)


def expect_planned(world: World, file: str, kind: str) -> None:
    name = f"{file}-{kind}"
    action, reason = planned(world, name)
    if file in ("status", "record") and not (kind == "absent" or (file, kind) == ("status", "empty")):
        assert action == "blocked"
        assert world.damaged[name] in reason
        with pytest.raises(ProduceError) as raised:
            materialize(world, name)
        assert world.damaged[name] in str(raised.value)
        return
    assert action == "reuse"
    assert (world.damaged[name] in reason) == (file == "manifest" or file == "status")
    if file != "status":
        assert materialize(world, name).reused


def test_a_dry_run_says_1_and_keeps_the_neighbours_plan(complete: World, failed: World, in_a_bucket: World) -> None:
    for world in (complete, failed, in_a_bucket):
        assert world.codes["materialize * --dry-run"] == 1
        assert planned(world, SOUND) == ("reuse", "complete")


@every_cell
def test_a_dry_run_says_whether_an_incomplete_output_can_be_claimed(failed: World, file: str, kind: str) -> None:
    name = f"{file}-{kind}"
    action, reason = planned(failed, name)
    if action == "wait":
        assert file == "lease"
        assert failed.damaged[name] in reason
        with pytest.raises(LeaseHeldError, match="cannot be read"):
            failed.store.claim(failed.node(name).output, attempt=3, resumable=True, run_id=None)
    elif action == "blocked":
        assert failed.damaged[name] in reason
        with pytest.raises(ProduceError) as raised:
            materialize(failed, name)
        assert failed.damaged[name] in str(raised.value)
    else:
        assert kind == "absent" or (file, kind) in (("status", "empty"), ("lease", "empty")) or file == "ledger"
        failed.store.claim(failed.node(name).output, attempt=3, resumable=True, run_id=None).lease.release()


class ClaimsOnly(LocalBackend):
    """The local back end, whose worker claims the output and goes no further. No Ray starts."""

    async def attempt_for(self, path: str) -> int:
        return first_free_attempt(path)

    async def submit(
        self,
        task: Task,
        on_job: Callable[[str], None] = lambda job: None,
        should_detach: Callable[[], bool] = lambda: False,
    ) -> Handle:
        Store(task.prefix).claim(task.output, attempt=task.attempt, resumable=task.resumable, run_id=None)
        raise AssertionError("the output can be claimed")


def materialize(world: World, name: str) -> Produced:
    """What a run does with one output until it computes; ProduceError with the sentence that Dagster shows."""
    request = dataclasses.replace(build_request(world.node(name), world.graph, world.store, None), external=())
    callbacks = RunCallbacks(log=lambda line: None, on_log=lambda line: None)
    try:
        return asyncio.run(produce(request, world.store, ClaimsOnly, callbacks=callbacks))
    except MarinError as error:
        raise ProduceError(str(error)) from error


@pytest.mark.long
def test_a_run_of_dagster_fails_for_damaged_outputs_alone(instance: dg.DagsterInstance, prefix: Path) -> None:
    cells = [("record", "cut"), ("status", "folder"), ("manifest", "deeper"), ("ledger", "binary"), ("mark", "list")]
    world = World(Store(str(prefix)), build_graph(steps(cells)), True)
    for node in world.graph:
        world.begin(node)
    for cell in cells:
        world.damaged["-".join(cell)] = damage.damage(world.path("-".join(cell)), *cell)
    result = run_steps(steps(cells), instance)
    failures = sorted(failure_sentence(event) for event in result.all_events if event.is_step_failure)
    assert ["\n" in sentence for sentence in failures] == [False, False]
    assert world.damaged["record-cut"] in failures[0]
    assert world.damaged["status-folder"] in failures[1]
    assert set(reused(result).values()) == {True}
    assert len(reused(result)) == 4
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert ["manifest-deeper" in check.asset_key.path for check in failed] == [True]


@every_cell
def test_the_page_of_a_reused_output_is_shown(complete: World, file: str, kind: str) -> None:
    """The check `complete` and the metadata: what the UI shows."""
    name = f"{file}-{kind}"
    node = complete.node(name)
    observed = complete.store.look([node.output])[node.output]
    if not observed.done:
        assert file in ("status", "record")
        return
    [check] = check_results(node.step, dg.AssetKey(["toy", name]), observed)
    page = materialization_metadata(Produced(observed=observed, reused=True))
    assert check.passed == (file != "manifest")
    if file == "manifest":
        assert damage.FILES[file] in str(check.metadata["value"].value)
    assert ("transfers_unknown" in page) == (file == "ledger" and kind != "absent")
    if "transfers_unknown" in page:
        assert complete.damaged[name] in str(page["transfers_unknown"])
