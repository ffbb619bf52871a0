"""Selections: parts of names, whole names, and what they read or are read by."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg
import pytest

from marin_assets import ConfigError
from marin_assets.assets.factory import build_assets
from marin_assets.catalog.asset_key import key_of
from marin_assets.catalog.code_location import select_nodes
from marin_assets.catalog.selection import select
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step


@dataclass(frozen=True)
class Nothing:
    pass


def part(name: str) -> Step:
    return Step(name=name, fn=print, config=Nothing())


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], "data tokens model database"),
        (["toy/data"], "data"),
        (["data"], "data database"),
        (["data$"], "data"),
        (["tok|mod"], "tokens model"),
        (["model", "toy/data"], "data model"),
        (["+tokens"], "data tokens"),
        (["tokens+"], "tokens model"),
        (["+tokens+"], "data tokens model"),
        (["+model"], "data tokens model"),
        (["1+model"], "tokens model"),
        (["toy/data+1"], "data tokens"),
        (["*"], "data tokens model database"),
        (['key:"toy/data"'], "data"),
        (['+key:"toy/tok*"'], "data tokens"),
        (["group:toy and not model"], "data tokens database"),
        (["not (data or model)"], "tokens"),
        (["roots(*)"], "data database"),
        (["sinks(+model)"], "model"),
        (["roots(+model)+1"], "data tokens"),
    ],
)
def test_a_selection_finds_steps_in_the_order_of_the_graph(experiment: str, patterns: list[str], names: str) -> None:
    for of_experiment in (None, experiment):
        _, nodes = select_nodes(patterns, of_experiment)
        assert [node.name for node in nodes] == [f"toy/{name}" for name in names.split()]


def test_an_experiment_that_was_left_out_says_why(experiment: str, tmp_path) -> None:
    (tmp_path / "experiments/broken_toys.py").write_text("raise RuntimeError('not yet')\n")
    with pytest.raises(ConfigError, match="Experiment 'broken_toys' is left out: RuntimeError: not yet"):
        select_nodes([], "broken_toys")


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        ("", "cannot be parsed as it is empty"),
        ("data and", "cannot be parsed as it ends too early"),
        ("(data", r"cannot be parsed as a '\)' is missing"),
        ("data model", "cannot be parsed at 'model'"),
        ("+2data", r"cannot be parsed at '\+2': write 2\+ before a step"),
        ("colour:red", "cannot be parsed at 'colour:', expected key:, group:, kind:, owner:, tag:"),
        ("daat", r"'daat' finds none of the steps\. Did you mean 'data'\?"),
        ("toy/tokesn", r"'toy/tokesn' finds none of the steps\. Did you mean 'toy/tokens'\?"),
        ("+tyo/modle", r"'tyo/modle' finds none of the steps\. Did you mean 'toy/model'\?"),
        ('key:"toy/daat"', r"finds none of the steps\. Did you mean 'toy/data'\?"),
        ("elsewhere", "'elsewhere' finds none of the steps toy/data, toy/database, toy/model, toy/tokens"),
        ("data[", "'data\\[' is not a pattern"),
    ],
)
def test_a_selection_that_means_nothing_says_what_is_wrong(experiment: str, selection: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        select_nodes([selection], None)


@pytest.mark.filterwarnings("ignore:Parameter `include_sources`")  # Dagster's own parser passes it
def test_dagster_selects_the_same_assets(experiment: str) -> None:
    """Each selection in Dagster's own syntax means to us what it means to Dagster."""
    graph, _ = select_nodes([], None)
    assets = build_assets(graph)
    for selection in (
        'key:"toy/data"',
        '+key:"toy/model"',
        '1+key:"toy/model"',
        'key:"toy/data"+',
        'key:"toy/data"+1',
        '+key:"toy/tokens"+',
        'key:"toy/*a*"',
        'group:"toy"',
        'group:"toy" and not key:"toy/data"',
        'not (key:"toy/data" or key:"toy/model")',
        'roots(+key:"toy/model")',
        'sinks(key:"toy/data"+)',
        "*",
    ):
        ours = {key_of(node) for node in select_nodes([selection], None)[1]}
        theirs = {tuple(key.path) for key in dg.AssetSelection.from_string(selection).resolve(assets)}
        assert ours == theirs, selection


def test_a_typo_in_a_large_graph_prints_no_wall() -> None:
    graph = build_graph([part(f"tokenized/web{i}") for i in range(300)] + [part("checkpoints/web")])
    for typo, meant in (("chekpoints/web", "checkpoints/web"), ("web/checkpiont", "checkpoints/web")):
        with pytest.raises(ConfigError, match=rf"finds none of the steps\. Did you mean '{meant}'"):
            select(graph, [typo])
    with pytest.raises(ConfigError, match=r"finds none of the steps\. .* `marin list` prints all 301"):
        select(graph, ["elsewhere"])


def test_a_whole_asset_key_is_that_step_and_a_name_comes_first() -> None:
    graph = build_graph([part("tokenized/web"), part("tokenized/web/clean"), part("web/tokenized/more")])
    for pattern in ("web/tokenized", "+web/tokenized"):
        assert [node.name for node in select(graph, [pattern])] == ["tokenized/web"], "the key that the UI shows"
    assert [node.name for node in select(graph, ["web"])] == [node.name for node in graph]
    other = build_graph([part("tokenized/web"), part("web/tokenized")])
    with pytest.raises(ConfigError, match="finds none"):
        select(other, ["web/tokens"])
    assert [node.name for node in select(other, ["web/tokenized"])] == ["web/tokenized"]
