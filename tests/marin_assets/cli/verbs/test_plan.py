"""`marin plan` and `marin run`: what is said, and exactly that is done."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from location import Location

from marin_assets.assets.factory import asset_key
from marin_assets.plan.plan import Action, Kind
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.render.text import ONE_BY_ONE
from marin_assets.run.force import withdraw_forced
from marin_assets.run.run_plan import lines_of_reused
from marin_assets.step.step import Step
from marin_resources.configuration.settings import project_root
from marin_resources.drift.drift import Drift
from marin_resources.drift.drift import Kind as DriftKind
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.files import remove, remove_folder, write_bytes
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed

Marin = Callable[..., tuple[int, str, str]]


def runs() -> list[dg.DagsterRun]:
    with dg.DagsterInstance.get() as instance:
        return list(instance.get_runs())


def step_of(location: Location, name: str) -> Step:
    return next(node.step for node in location.graph if node.name == name)


def key_of(location: Location, name: str) -> dg.AssetKey:
    return asset_key(location.graph[step_of(location, name)])


def newest(location: Location, name: str) -> dg.AssetMaterialization:
    with dg.DagsterInstance.get() as instance:
        event = instance.get_latest_materialization_event(key_of(location, name))
    assert event is not None
    assert event.asset_materialization is not None
    return event.asset_materialization


def test_the_first_word_may_be_an_experiment(location: Location, marin: Marin) -> None:
    code, out, err = marin("plan", location.name)
    assert code == 0, err
    assert out.splitlines()[-1] == "4 to run"
    code, out, _ = marin("plan", location.name, "+key:toy/tokens")
    assert (code, out.splitlines()[-1]) == (0, "2 to run")


def test_the_json_is_the_plan_and_nothing_else(location: Location, marin: Marin) -> None:
    code, out, _ = marin("plan", location.name, "--json")
    plan = json.loads(out)
    assert (code, plan["counts"]["run"], plan["prefix"]) == (0, 4, location.store.prefix)
    assert next(output["step"] for output in plan["outputs"]) == "toy/data"


def test_the_page_has_each_step_and_its_colour(location: Location, marin: Marin, tmp_path: Path) -> None:
    location.make("toy/data")
    code, _, err = marin("plan", location.name, "--html", str(tmp_path / "plan.html"))
    page = (tmp_path / "plan.html").read_text()
    assert code == 0, err
    assert 'class="node reuse"' in page
    assert page.count('class="node run"') == 3
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no_such_step",), "The selection 'no_such_step' finds none of the steps"),
        (("nothing.py",), "There is no script 'nothing.py'"),
        (("--plan", "x.json", "toy/data"), "got --plan and words, expected one of them"),
        (("--plan", "no.json"), "There is no plan 'no.json'. Save one with `marin plan … --save FILE`."),
        (("toy/data", "--run-only", "data"), "Got a selection and --run-only, expected one of them."),
        ((), "marin run: got no selection, expected at least one. Pass an experiment, a script, names of steps,"),
        (("--dry-run",), "marin run: got no selection"),
        (("--launch",), "marin run: got no selection"),
        (("",), "marin run: got no selection"),
        (("--partition", "a"), "marin run: got no selection"),
        (("--force", "toy/data"), "marin run: got no selection"),
        (("*", "--force", "no_such_step"), "The selection 'no_such_step' finds none of the steps"),
    ],
)
def test_wrong_words_are_one_sentence(location: Location, marin: Marin, words: tuple[str, ...], said: str) -> None:
    code, out, err = marin("run", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("*",), ("--run-only", ".*"), ("--experiment", "{name}")])
def test_all_steps_run_on_demand_only(location: Location, marin: Marin, words: tuple[str, ...]) -> None:
    code, out, err = marin("run", *(word.format(name=location.name) for word in words), "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "4 to run"), err


def test_a_run_of_what_is_complete_is_no_run_and_dagster_knows_the_outputs(
    made: Location, marin: Marin, dagster_home: Path
) -> None:
    code, _, err = marin("run", made.name, "toy/model", "toy/tokens")
    assert (code, "0 computed, 2 reused, 0 failed" in err) == (0, True), err
    assert runs() == []
    first = newest(made, "toy/model")
    assert first.tags["dagster/data_version"] == made.graph[step_of(made, "toy/model")].version.hash
    with dg.DagsterInstance.get() as instance:
        count = len(instance.fetch_materializations(key_of(made, "toy/model"), limit=9).records)
    marin("run", made.name, "toy/model", "toy/tokens")
    with dg.DagsterInstance.get() as instance:
        assert len(instance.fetch_materializations(key_of(made, "toy/model"), limit=9).records) == count == 1


def test_an_output_without_one_of_its_files_fails_its_check(made: Location, marin: Marin, dagster_home: Path) -> None:
    remove(join(made.path("toy/tokens"), "value.txt"))
    code, _, err = marin("run", made.name, "toy/tokens")
    assert code == 1
    assert "Check 'complete'" in err


@pytest.mark.parametrize("words", [("plan",), ("run", "--dry-run"), ("materialize", "--dry-run")])
def test_a_prefix_below_which_nothing_is_stored_is_named(
    made: Location, marin: Marin, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, *options = words
    typo = f"{made.store.prefix}-typo"
    code, _, err = marin(verb, "toy/tokens", *options, "--prefix", typo)
    assert code == 0
    assert err == (
        f"No output is stored below the prefix {typo!r} yet. If outputs are expected there, check --prefix and "
        "MARIN_PREFIX.\n"
    )
    assert marin(verb, "toy/database", *options, "--prefix", made.store.prefix)[2] == ""
    monkeypatch.setattr("marin_resources.configuration.settings.project_root", lambda: Path("/none"))
    assert marin(verb, "toy/tokens", *options, "--prefix", "/none/outputs")[2] == ""


def test_a_verified_plan_names_a_file_that_is_missing_or_of_another_size(made: Location, marin: Marin) -> None:
    path = made.path("toy/tokens")
    assert marin("plan", made.name, "toy/tokens", "--verify") == marin("plan", made.name, "toy/tokens")
    write_bytes(join(path, "value.txt"), b"12345")
    code, out, _ = marin("plan", made.name, "toy/tokens", "--verify")
    said = "complete; its files are not as its manifest says: resized 'value.txt': expected 1 bytes, found 5 bytes"
    assert (code, said in out, "1 to reuse" in out) == (1, True, True), out
    remove(join(path, "value.txt"))
    remove(join(path, "train/ledger.json"))
    code, out, _ = marin("plan", made.name, "toy/tokens", "--verify", "--json")
    [output] = json.loads(out)["outputs"]
    assert (code, output["action"], output["kind"]) == (1, "reuse", "damaged")
    assert output["damage"] == (
        "its files are not as its manifest says: missing 'train/ledger.json': expected 2 bytes, found nothing and 1 "
        "more, which `marin verify` lists"
    )


def test_a_saved_plan_is_refused_when_the_world_has_changed(
    made: Location, marin: Marin, dagster_home: Path, tmp_path: Path
) -> None:
    saved = str(tmp_path / "plan.json")
    assert marin("plan", made.name, "toy/model", "--save", saved)[0] == 0
    assert marin("run", "--plan", saved)[0] == 0
    remove_folder(made.path("toy/model"))
    code, _, err = marin("run", "--plan", saved)
    assert code == 2
    assert "does not hold any more: 'toy/model' was to reuse, and is to run. Plan again." in err


def test_a_blocked_step_keeps_the_others_from_running(location: Location, marin: Marin) -> None:
    code, _, err = marin("run", location.name, "key:toy/tokens")
    assert code == 1
    assert "needs 'toy/data', which is not complete and not selected" in err
    assert "Nothing is run." in err


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format_version": 99}', b'{"format_version": 1}'])
def test_a_damaged_plan_is_one_sentence(location: Location, marin: Marin, tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(damage)
    code, _, err = marin("run", "--plan", str(path))
    assert code == 2
    assert err.startswith(f"The plan {str(path)!r} ")
    assert err.count("\n") == 1


def test_a_launched_plan_is_one_run_in_the_queue_of_what_is_not_complete(
    location: Location, marin: Marin, dagster_home: Path
) -> None:
    shutil.copy(project_root() / ".dagster/dagster.yaml", dagster_home)
    location.make("toy/data")
    code, out, err = marin("run", location.name, "--launch")
    assert code == 0, err
    assert "No daemon is running for this instance, so it waits." in err
    [run] = runs()
    assert out == f"run: {run.run_id}\n"
    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.job_name == location.name
    assert "marin/user" in run.tags
    assert run.asset_selection == {key_of(location, f"toy/{name}") for name in ("tokens", "model", "database")}


def test_what_is_complete_or_forced_or_of_a_script_is_not_launched(
    made: Location, marin: Marin, dagster_home: Path, tmp_path: Path
) -> None:
    code, out, _ = marin("run", made.name, "toy/model", "--launch")
    assert (code, out) == (0, "All is complete, so nothing is launched.\n")
    code, _, err = marin("run", made.name, "toy/model", "--force", "toy/model", "--launch")
    assert code == 2
    assert "got --launch and --force" in err
    assert runs() == []
    assert state_of_model(made).done


def state_of_model(made: Location) -> Observed:
    node = made.graph[step_of(made, "toy/model")]
    return made.store.look([node.output])[node.output]


@pytest.mark.parametrize("words", [("toy/model", "toy/tokens", "--inline"), ("toy/model", "--launch")])
def test_a_command_that_is_refused_has_withdrawn_nothing(
    made: Location, marin: Marin, dagster_home: Path, words: tuple[str, ...]
) -> None:
    code, _, err = marin("run", made.name, *words, "--force", "toy/model")
    assert code == 2, err
    assert state_of_model(made).done


@pytest.mark.parametrize("home", ["a file", "no right to write"])
def test_without_a_dagster_home_a_forced_output_stays(
    made: Location, marin: Marin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "file" / ("below" if home != "a file" else "")).rstrip("/"))
    assert marin("run", made.name, "toy/model", "--force", "toy/model")[0] == 2
    assert state_of_model(made).done


@pytest.mark.parametrize("words", [("--experiment", "{name}"), ("{name}", "--run-only", "toy/model")])
def test_a_saved_plan_has_all_options_that_chose_its_steps(
    made: Location, marin: Marin, dagster_home: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    saved = str(tmp_path / "plan.json")
    given = [word.format(name=made.name) for word in words]
    assert marin("plan", *given, "--save", saved)[0] == 0
    code, out, err = marin("run", "--plan", saved, "--dry-run")
    assert code == 0, err
    assert out == marin("plan", *given)[1]


def test_a_saved_plan_of_wrong_options_is_one_sentence(made: Location, marin: Marin, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    marin("plan", made.name, "--save", str(saved))
    plan = json.loads(saved.read_text())
    for wrong in ({"words": [1]}, {"words": "a"}, {"experiment": 5}, {"unknown": True}, {"force_run_failed": "no"}):
        saved.write_text(json.dumps({**plan, "request": wrong}))
        code, out, err = marin("run", "--plan", str(saved))
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert f"asks for {next(iter(wrong))}=" in err


def test_what_is_forced_is_among_the_selected_steps(made: Location, marin: Marin) -> None:
    code, _, err = marin("plan", made.name, "toy/model", "--force", "toy/data")
    assert code == 2
    assert "--force" in err or "The selection 'toy/data' finds none" in err


def test_a_collected_output_is_reused_and_computed_again_if_it_is_forced(made: Location, marin: Marin) -> None:
    node = made.graph[step_of(made, "toy/model")]
    withdraw(made.store, node.output, Terms(by="tester", grace=timedelta(days=7)))
    code, out, _ = marin("plan", made.name, "toy/model")
    assert (code, "collected by marin gc, and comes back without computing" in out) == (0, True)
    [item] = prepare_plan(made.graph, made.store, [node], forced=[node.output])
    assert (item.action, item.kind) == (Action.RUN, Kind.FORCED)
    withdraw_forced([item], made.store)
    assert not made.store.look([node.output])[node.output].done
    [again] = prepare_plan(made.graph, made.store, [node])
    assert again.action is Action.RUN


def test_of_many_reused_outputs_that_drift_the_rest_is_counted(made: Location) -> None:
    node = made.graph[step_of(made, "toy/model")]
    [item] = prepare_plan(made.graph, made.store, [node])
    drifts = replace(item, drift=(Drift(kind=DriftKind.CONFIG, what="rate", was=1, now=2),))
    few, many = lines_of_reused([drifts] * ONE_BY_ONE), lines_of_reused([drifts] * 1000)
    assert len(few) == ONE_BY_ONE
    assert many[:-1] == few
    assert many[-1] == "and 988 more drift: see `marin plan`"
    assert lines_of_reused([item] * 1000) == []
