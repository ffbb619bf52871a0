"""`marin partitions` and `marin backfill`, of an experiment of the code location."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from partition_steps import part
from running import ROOT

import marin_assets.experiments
from marin_assets import ConfigError, dynamic, output_path_of, product, static, versioned
from marin_assets.assets.factory import definition_of
from marin_assets.assets.runs.run import run_graph
from marin_assets.catalog.experiments_folder import load_experiments
from marin_assets.plan.partition_runs import PartitionRun
from marin_assets.run.partition_options import add_keys_of, chosen_runs, lines_of_new_keys
from marin_assets.step.graph import Graph, Node, build_graph
from marin_assets.step.partitions.sets import Partitions
from marin_resources.storage.output.store import Store

Marin = Callable[..., tuple[int, str, str]]
EXPERIMENT = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from marin_assets import dynamic, static

def steps():
    calls = Path({calls!r})
    return [part("deliveries", dynamic("deliveries"), calls), part("fixed", static("a", "b", "c"), calls)]
"""


@pytest.fixture
def graph(tmp_path: Path, prefix: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    folder = tmp_path / "experiments"
    folder.mkdir()
    name = f"parts_{uuid.uuid4().hex[:8]}"
    text = EXPERIMENT.format(support=str(ROOT / "tests" / "support"), calls=str(tmp_path / "calls.txt"))
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(marin_assets.experiments, "__path__", [str(folder)])
    return build_graph(load_experiments().steps[name])


@pytest.fixture
def make(graph: Graph, prefix: Path) -> Callable[..., None]:
    """Completes partitions of a step, or lets their attempts fail."""
    store = Store(str(prefix))

    def make(name: str, *keys: str, fails: bool = False) -> None:
        [node] = [node for node in graph if node.name == name]
        for key in keys:
            claim = store.claim(node.at(key).output, attempt=1, resumable=False, run_id=None)
            Path(claim.path, "value.txt").write_text(key)
            facts = {"version": node.version.as_dict(), "name": name}
            store.fail(claim, facts, "broken", "") if fails else store.publish(claim, facts, {})

    return make


def keys_in_dagster() -> list[str]:
    with dg.DagsterInstance.get() as instance:
        return list(instance.get_dynamic_partitions("deliveries"))


def requested() -> dict[str, list[str]]:
    """The keys of each backfill that the daemon will carry out, by its title."""
    with dg.DagsterInstance.get() as instance:
        return {
            str(each.title): sorted(
                key
                for subset in each.asset_backfill_data.target_subset.partitions_subsets_by_asset_key.values()
                for key in subset.get_partition_keys()
            )
            for each in instance.get_backfills()
            if each.asset_backfill_data is not None
        }


def test_sync_shows_dagster_the_outputs_that_it_does_not_know(
    make: Callable[..., None], marin: Marin, dagster_home: Path, prefix: Path
) -> None:
    make("parts/deliveries", "2026-01", "a b/c")
    make("parts/deliveries", "broken", fails=True)
    make("parts/fixed", "b")
    code, out, err = marin("sync", "--dry-run")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "parts/deliveries[2026-01]",
        "parts/deliveries[a b/c]",
        "parts/fixed[b]",
        f"Dagster does not know 3 outputs at {prefix}",
    ]
    assert keys_in_dagster() == []
    assert marin("sync", "parts/fixed") == (0, f"Dagster knows 1 output more at {prefix}\n", "")
    code, out, err = marin("sync")
    assert (code, out) == (0, f"Dagster knows 2 outputs more at {prefix}\n")
    assert err.startswith("new in the set 'deliveries': 2 keys\n")
    assert keys_in_dagster() == ["2026-01", "a b/c"]
    assert marin("sync")[:2] == (0, f"Dagster knows 0 outputs more at {prefix}\n")
    code, _, err = marin("sync", "parts/nothing")
    assert code == 2
    assert "parts/nothing" in err


def test_keys_that_are_in_the_store_come_back_into_a_lost_instance(
    make: Callable[..., None], marin: Marin, dagster_home: Path
) -> None:
    make("parts/deliveries", "2026-01", "a b/c")
    make("parts/deliveries", "2026-02", fails=True)
    code, _, err = marin("partitions", "parts/deliveries", "--register")
    assert (code, err) == (0, "new in the set 'deliveries': 2026-01, 2026-02, a b/c\n")
    assert keys_in_dagster() == ["2026-01", "2026-02", "a b/c"]
    code, _, err = marin("partitions", "parts/deliveries", "--register")
    assert err == "Dagster knows the keys of all 3 partitions that the store has already\n"


def test_a_set_in_the_code_has_nothing_to_register(graph: Graph, marin: Marin) -> None:
    code, _, err = marin("partitions", "parts/fixed", "--register")
    assert code == 2
    assert "whose keys are in the code: there is nothing to register. Leave out --register." in err


def test_the_table_says_what_is_there(make: Callable[..., None], marin: Marin) -> None:
    make("parts/fixed", "a")
    make("parts/fixed", "b", fails=True)
    code, out, _ = marin("partitions", "parts/fixed")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["complete", "a"],
        ["failed", "b"],
        ["missing", "c"],
        ["1", "complete,"],
    ]
    _, out, _ = marin("partitions", "parts/fixed", "--state", "failed", "--state", "missing", "--keys")
    assert out == "b\nc\n"
    _, out, _ = marin("partitions", "parts/fixed", "--json")
    assert [(each["key"], each["state"]) for each in json.loads(out)["partitions"]] == [
        ("a", "complete"),
        ("b", "failed"),
        ("c", "missing"),
    ]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["b", "c"]),
        (["--missing"], ["b", "c"]),
        (["--failed"], ["b"]),
        (["--unsynced"], []),
        (["--partition", "a"], ["a"]),
        (["--partition-range", "a...b"], ["a", "b"]),
    ],
)
def test_a_backfill_is_requested_for_the_chosen_partitions(
    make: Callable[..., None], marin: Marin, options: list[str], keys: list[str]
) -> None:
    make("parts/fixed", "a")
    make("parts/fixed", "b", fails=True)
    counted = f"{len(keys)} partition{'s' * (len(keys) != 1)}"
    shown = f"{counted} of parts/fixed{': ' * bool(keys)}{', '.join(keys)}"
    assert marin("backfill", "parts/fixed", *options, "--dry-run") == (0, shown + "\n", "")
    assert requested() == {}
    code, out, err = marin("backfill", "parts/fixed", *options)
    assert (code, out.splitlines()[0]) == (0, shown)
    assert ("No daemon is running" in err) == bool(keys)
    assert requested() == ({f"parts/fixed: {counted}": keys} if keys else {})


def test_unsynced_are_those_that_dagster_has_at_another_version(
    graph: Graph, marin: Marin, prefix: Path, tmp_path: Path
) -> None:
    before = part("fixed", static("a", "b", "c"), tmp_path / "calls.txt", value=versioned(2))
    earlier = build_graph([before])
    store = Store(str(prefix))
    for key in ("a", "b"):
        claim = store.claim(earlier[before].at(key).output, attempt=1, resumable=False, run_id=None)
        store.publish(claim, {"version": earlier[before].version.as_dict(), "name": before.name}, {})
    assert run_graph("earlier", earlier, list(earlier), keys=("a", "b")).reused == 2
    assert marin("backfill", "parts/fixed", "--unsynced", "--dry-run")[1] == "2 partitions of parts/fixed: a, b\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["parts/fixed", "--partition", "d"], "There is no partition 'd', expected one of"),
        (["parts/fixed", "--partition", "a", "--failed"], "got keys and a state, expected one of them."),
        (
            ["parts/deliveries", "parts/fixed"],
            "takes one step with partitions, and got 'parts/deliveries', 'parts/fixed'.",
        ),
        (["parts/fixd"], "finds none of the steps"),
        ([], "marin backfill: got no selection, expected at least one. Pass the name of a step with partitions."),
        (["--missing"], "marin backfill: got no selection"),
    ],
)
def test_a_mistake_is_one_sentence(graph: Graph, marin: Marin, words: list[str], sentence: str) -> None:
    code, _, err = marin("backfill", *words, "--dry-run")
    assert (code, sentence in err) == (2, True), err


def test_a_new_key_of_a_dynamic_set_is_added_with_its_backfill(graph: Graph, marin: Marin) -> None:
    code, _, err = marin("backfill", "parts/deliveries", "--partition", "2026-01")
    assert (code, "new in the set 'deliveries': 2026-01" in err) == (0, True), err
    assert requested() == {"parts/deliveries: 1 partition": ["2026-01"]}


def test_without_a_database_the_partitions_of_a_set_in_the_code_are_listed(
    make: Callable[..., None], marin: Marin, dagster_home: Path
) -> None:
    make("parts/fixed", "a")
    shutil.rmtree(dagster_home)
    code, out, _ = marin("partitions", "parts/fixed")
    assert (code, out.splitlines()[0].split()[0]) == (0, "complete")


def test_a_partition_has_a_path_and_a_page_of_its_own(make: Callable[..., None], marin: Marin, prefix: Path) -> None:
    make("parts/fixed", "a")
    code, folder, err = marin("path", "parts/fixed")
    assert (code, err) == (1, "parts/fixed is not complete, its partitions: 1 complete, 2 missing\n")
    code, path, _ = marin("path", "parts/fixed", "--partition", "a")
    assert (code, Path(path.strip()).parent, Path(path.strip(), "value.txt").read_text()) == (
        0,
        Path(folder.strip()),
        "a",
    )
    code, page, _ = marin("open", "parts/fixed", "--partition", "a", "--print")
    assert page.endswith("/assets/parts/fixed?view=partitions&partition=a\n")
    code, _, err = marin("logs", "parts/fixed")
    assert (code, err) == (
        2,
        "Step 'parts/fixed' has partitions, expected --partition KEY. See them: "
        "marin partitions 'key:\"parts/fixed\"'\n",
    )
    assert marin("logs", "parts/fixed", "--partition", "b")[0] == 1
    assert marin("path", "parts/fixed", "--partition", "z")[0] == 2


def test_a_step_is_forced_at_the_partitions_of_the_plan(graph: Graph, make: Callable[..., None], marin: Marin) -> None:
    make("parts/fixed", "a", "b", "c")
    code, out, err = marin("plan", "parts/fixed", "--force", "parts/fixed")
    assert code == 0, err
    assert out.splitlines()[-1].startswith("3 to run")
    code, out, _ = marin("plan", "parts/fixed", "--force", "parts/fixed", "--partition", "b")
    assert out.splitlines()[-1].startswith("1 to run")


def node_of(partitions: Partitions, name: str = "deliveries", **fields: Any) -> Node:
    step = part(name, partitions, Path("/nowhere"), **fields)
    return build_graph([step])[step]


def made_by_dagster(runs: Sequence[PartitionRun]) -> list[tuple[str, ...]]:
    """The keys that Dagster makes of each run, whose keys are a range to it."""
    with dg.DagsterInstance.get() as instance, partition_loading_context(dynamic_partitions_store=instance):
        return [
            tuple(map(str, definition.get_partition_keys_in_range(dg.PartitionKeyRange(run.keys[0], run.keys[-1]))))
            for run in runs
            if (definition := definition_of(run.nodes[0].step.partitions)) is not None
        ]


@pytest.mark.parametrize("known", [[], ["k05", "zz"]])
def test_30_new_keys_are_one_run(dagster_home: Path, known: list[str]) -> None:
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", known)
    keys = [f"k{number:02}" for number in range(30)]
    runs = chosen_runs([node_of(dynamic("deliveries"))], [*reversed(keys), "k07"], None)
    assert lines_of_new_keys(runs) == [f"new in the set 'deliveries': {', '.join(k for k in keys if k not in known)}"]
    assert keys_in_dagster() == known, "nothing is added by a look"
    assert len(runs) == (2 if known else 1)
    assert sorted(key for run in runs for key in run.keys) == keys
    add_keys_of(*runs)
    assert made_by_dagster(runs) == [run.keys for run in runs]
    few = chosen_runs([node_of(dynamic("deliveries"), per_run=10)], [f"n{number:02}" for number in range(30)], None)
    assert [len(run.keys) for run in few] == [10, 10, 10]


def test_new_keys_of_a_product_are_a_run_for_each_key_of_the_first_set(dagster_home: Path) -> None:
    sets = product(delivery=dynamic("deliveries"), lang=static("en", "de", "fr"))
    runs = chosen_runs([node_of(sets)], ["b|en", "a|en", "a|de", "b|fr"], None)
    assert [run.keys for run in runs] == [("a|en", "a|de"), ("b|en",), ("b|fr",)]
    add_keys_of(*runs)
    assert keys_in_dagster() == ["a", "b"]
    assert made_by_dagster(runs) == [run.keys for run in runs]


def test_a_new_key_is_added_to_one_set_alone(dagster_home: Path) -> None:
    raw = part("raw", dynamic("deliveries"), Path("/nowhere"))
    models = part("models", dynamic("snapshots"), Path("/nowhere"))
    graph = build_graph([raw, models])
    with pytest.raises(ConfigError, match="the selected steps have several sets") as refused:
        chosen_runs(list(graph), ["2026-01"], None)
    assert "--partition '2026-01' is new in dynamic('deliveries')" in str(refused.value)
    assert "dynamic('deliveries') of 'parts/raw' and dynamic('snapshots') of 'parts/models'" in str(refused.value)
    assert str(refused.value).endswith("Select the steps of one of them.")
    assert [run.keys for run in chosen_runs([graph[raw]], ["2026-01"], None)] == [("2026-01",)]
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", ["2026-01"])
    with pytest.raises(ConfigError, match=re.escape("is new in dynamic('snapshots')")):
        chosen_runs(list(graph), ["2026-01"], None)
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("snapshots", ["2026-01"])
    assert len(chosen_runs(list(graph), ["2026-01"], None)) == 2


def test_a_key_of_an_input_that_the_config_names_may_be_new_in_another_set(dagster_home: Path) -> None:
    raw = part("raw", dynamic("deliveries"), Path("/nowhere"))
    models = part("models", dynamic("snapshots"), Path("/nowhere"), reads=output_path_of(raw, partition="2026-01"))
    runs = chosen_runs(list(build_graph([models])), ["february"], None)
    assert [(run.nodes[0].name, run.keys) for run in runs] == [
        ("parts/raw", ("2026-01",)),
        ("parts/models", ("february",)),
    ]


def test_a_key_that_differs_in_case_alone_is_refused_and_a_set_that_has_both_works(dagster_home: Path) -> None:
    node = node_of(dynamic("deliveries"))
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", ["case"])
    with pytest.raises(ConfigError, match="'Case' is new in the set 'deliveries', and 'case' is one folder with it"):
        chosen_runs([node], ["Case"], None)
    with pytest.raises(ConfigError, match="'New' is one folder with it"):
        chosen_runs([node], ["New", "new"], None)
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", ["Case"])
    assert [run.keys for run in chosen_runs([node], ["Case"], None)] == [("Case",)]
    assert [run.keys for run in chosen_runs([node], [], None)] == [("case", "Case")]
    assert add_keys_of(*chosen_runs([node], ["other"], None))
    assert keys_in_dagster() == ["case", "Case", "other"]


def test_a_dry_run_says_which_key_is_new_and_adds_none(graph: Graph, marin: Marin, dagster_home: Path) -> None:
    for words in (
        ("materialize", "parts/deliveries", "--partition", "2026-1", "--dry-run"),
        ("run", "parts/deliveries", "--partition", "2026-1", "--dry-run"),
        ("plan", "parts/deliveries", "--partition", "2026-1"),
        ("backfill", "parts/deliveries", "--partition", "2026-1", "--dry-run"),
    ):
        code, out, _ = marin(*words)
        assert code == 0
        assert "new in the set 'deliveries': 2026-1\n" in out, words
    assert keys_in_dagster() == []


def test_a_key_that_was_typed_wrong_is_removed(
    graph: Graph, make: Callable[..., None], marin: Marin, dagster_home: Path
) -> None:
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("deliveries", ["2026-01", "2026-1", "2026-02"])
    make("parts/deliveries", "2026-02")
    code, out, err = marin("partitions", "parts/deliveries", "--remove", "2026-1", "--remove", "2026-02")
    assert (code, err) == (0, "removed from the set 'deliveries': 2026-1\nremoved from the set 'deliveries': 2026-02\n")
    assert [line.split()[:2] for line in out.splitlines()][:-1] == [["missing", "2026-01"], ["complete", "2026-02"]]
    assert keys_in_dagster() == ["2026-01"]
    code, _, err = marin("partitions", "parts/deliveries", "--remove", "2026-1")
    assert (code, keys_in_dagster()) == (2, ["2026-01"])
    assert "The set 'deliveries' has no key '2026-1'. Did you mean '2026-01'?" in err
    code, _, err = marin("partitions", "parts/fixed", "--remove", "a")
    assert code == 2
    assert "whose keys are in the code: there is nothing to remove. Leave out --remove." in err
    assert marin("partitions", "parts/deliveries", "--remove", "a", "--register")[0] == 2
