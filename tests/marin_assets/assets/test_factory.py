"""Steps as assets: what Dagster knows of them before they run."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import toy_steps
from toy_steps import ToyConfig, toy

from marin_assets import ConfigError, Step, expect, output_path_of, step_group
from marin_assets.assets.assemble import assemble, resources
from marin_assets.assets.checks import op_name
from marin_assets.assets.factory import asset_key, build_assets
from marin_assets.catalog.asset_key import group_of, key_of, selection_of
from marin_assets.catalog.experiments_folder import Experiments
from marin_assets.catalog.validation import MAX_CHAIN
from marin_assets.experiments.quickstart import steps as quickstart
from marin_assets.step.graph import Node, build_graph

GROUPS = ("documents", "filters", "decontamination", "model")
"""Of the quickstart, in the order of the data."""


def spec_of(step: Step) -> dg.AssetSpec:
    return next(iter(build_assets(build_graph([step]))[-1].specs))


def test_the_code_version_is_the_hash_in_the_path() -> None:
    for step in quickstart():
        node = build_graph([step])[step]
        spec = spec_of(step)
        assert node.version.path.endswith(f"-{spec.code_version}")
        assert spec.metadata["marin/path"] == node.version.path


def test_dependencies_are_the_blocking_references_only() -> None:
    a, b = toy("a"), toy("b")
    c = Step(
        name="toy/c",
        fn=toy_steps.make,
        config=ToyConfig(input_path=output_path_of(a), gate=output_path_of(b).nonblocking()),
    )
    assert [dep.asset_key.to_user_string() for dep in spec_of(c).deps] == ["toy/a"]


def test_an_asset_shows_its_group_kinds_owners_tags_and_description() -> None:
    spec = spec_of(toy("a", kinds=("jax",), owners=("team:data",), tags={"team": "data"}, description="Words."))
    assert (spec.group_name, set(spec.kinds), list(spec.owners), spec.description) == (
        "toy",
        {"jax"},
        ["team:data"],
        "Words.",
    )
    assert spec.tags["team"] == "data"
    assert spec_of(toy("a")).description.startswith("Write the value")
    assert set(spec_of(toy("a")).kinds) == {"python"}


def test_the_catalog_says_what_an_asset_is_and_not_what_its_function_returns() -> None:
    specs = {spec.key.path[-1]: spec for asset in build_assets(build_graph(quickstart())) for spec in asset.specs}
    for name, spec in specs.items():
        assert spec.kinds, name
        assert spec.description, name
        assert "Returns" not in spec.description, name
    description = specs["quality"].description
    assert description.startswith("Score documents by a classifier: attributes with the probability of a label, ")
    assert description.endswith("value is the score, the probability of `label` with 6 digits.")
    assert "\n\nIn: documents, and a classifier of `train_fasttext`" in description
    assert "\n- `waterfall.json`: documents and bytes that each attribute removed" in specs["selected"].description
    assert 'documents "&lt;page id>#&lt;n>" that' in specs["documents"].description
    assert set(specs["checkpoints"].kinds) == {"levanter", "jax"}


def test_definition_metadata_is_small() -> None:
    assert len(str(dict(spec_of(quickstart()[-1]).metadata))) < 600


def test_expectations_are_asset_checks() -> None:
    [asset] = build_assets(build_graph([toy("a", expectations=[expect("value", at_least=1)])]))
    assert {spec.name for spec in asset.check_specs} == {"complete", "value"}


@pytest.mark.parametrize("name", ["a/b=1,lr=3e-4", "a/fineweb-edu", "a/b__c", "a_/b", "a/_b", "x.y/z", "alone"])
def test_a_name_that_starts_with_no_kind_of_output_is_the_asset_key(name: str) -> None:
    assert op_name(name).replace("_", "").isalnum()
    assert spec_of(Step(name=name, fn=toy_steps.make, config=ToyConfig())).key.to_user_string() == name


@pytest.mark.parametrize(
    ("name", "key", "group"),
    [
        ("raw/fineweb-edu", "fineweb-edu/raw", "fineweb_edu"),
        ("raw/a=1,lr=3e-4", "a=1,lr=3e-4/raw", "a_1_lr_3e_4"),
        ("checkpoints/sweep/lr=3e-4,width=64", "sweep/checkpoints/lr=3e-4,width=64", "sweep"),
        ("attributes/fineweb/quality", "fineweb/attributes/quality", "fineweb"),
        ("attributes/fineweb", "fineweb/attributes", "fineweb"),
        ("raw", "raw", "raw"),
        ("two_steps/stats", "two_steps/stats", "two_steps"),
    ],
)
def test_the_key_has_the_subject_first_and_then_the_kind_of_output(name: str, key: str, group: str) -> None:
    spec = spec_of(Step(name=name, fn=toy_steps.make, config=ToyConfig()))
    assert (spec.key.to_user_string(), spec.group_name) == (key, group)


def test_the_group_of_an_experiment_in_a_folder_begins_with_the_folder_and_its_key_does_not() -> None:
    spec = spec_of(Step(name="checkpoints/width-sweep/lr=1", fn=toy_steps.make, config=ToyConfig()))
    assert (spec.key.to_user_string(), spec.group_name) == ("width-sweep/checkpoints/lr=1", "recipes_width_sweep")


def test_the_quickstart_is_first_by_group_and_by_key() -> None:
    from marin_assets.catalog.experiments_folder import load_experiments

    steps = [step for each in load_experiments().steps.values() for step in each]
    nodes = [node for node in build_graph(steps) if node.version.name.split("/")[0] != "report"]
    assert min(group_of(node) for node in nodes).startswith("quickstart/")
    apart = [node for node in nodes if not group_of(node).startswith("recipes_")]
    assert min(key_of(node) for node in apart)[0] == "quickstart"


def test_steps_of_a_block_are_a_group_of_their_subject() -> None:
    with step_group("model"):
        trained = Step(name="checkpoints/nano", fn=toy_steps.make, config=ToyConfig())
        with step_group("scores"):
            scored = Step(name="evaluation/nano", fn=toy_steps.make, config=ToyConfig())
    apart = Step(name="generated/nano", fn=toy_steps.make, config=ToyConfig())
    specs = [spec_of(step) for step in (trained, scored, apart, replace(trained, name="checkpoints/small"))]
    assert [spec.group_name for spec in specs] == ["nano/model", "nano/model/scores", "nano", "small/model"]
    assert spec_of(replace(trained, group=None)).code_version == specs[0].code_version


@pytest.mark.parametrize("name", ["", "a b", "a/", "a-b", "ä", 3, None])
def test_a_group_that_dagster_does_not_take_is_refused_where_it_is_named(name: Any) -> None:
    expected = r"has the group .*, expected letters, digits and '_'"
    with pytest.raises(ConfigError, match=expected), step_group(name):
        raise AssertionError
    if name is not None:
        with pytest.raises(ConfigError, match=f"Step 'raw/nano' {expected}"):
            Step(name="raw/nano", group=name, fn=toy_steps.make, config=ToyConfig())


def test_each_group_of_the_quickstart_fits_a_window_with_labels_that_can_be_read() -> None:
    """Dagster fits the lineage to the width: six columns in 900 px have labels of 8 px, and fifteen of 4."""
    nodes = build_graph(quickstart())  # inputs first
    columns: dict[Node, int] = {}
    boxes: dict[str, int] = {}
    for node in nodes:
        own = group_of(node)
        columns[node] = 1 + max((columns[source] for source in node.dependencies if group_of(source) == own), default=0)
        before = [boxes[group_of(source)] for source in node.dependencies if group_of(source) != own]
        boxes[own] = max(boxes.get(own, 1), *(number + 1 for number in before), 1)
    assert max(columns.values()) <= 6
    assert boxes == {f"quickstart/{name}": i + 1 for i, name in enumerate(GROUPS)}


def test_a_step_can_have_a_key_of_its_own() -> None:
    spec = spec_of(Step(name="raw/web", key=("crawl", "pages"), fn=toy_steps.make, config=ToyConfig()))
    assert (spec.key.to_user_string(), spec.group_name) == ("crawl/pages", "crawl")


def test_every_box_of_the_quickstart_says_what_it_is() -> None:
    """A box in Dagster's lineage shows the last segment of the key, cut to 18 characters where it is small."""
    specs = [next(iter(asset.specs)) for asset in build_assets(build_graph(quickstart()))]
    assert {spec.group_name for spec in specs} == {f"quickstart/{name}" for name in GROUPS}
    labels = [spec.key.path[-1] for spec in specs]
    assert sorted(labels) == sorted(
        [
            *("raw", "documents", "tokenizers", "exact_duplicates", "clusters", "near_duplicates", "repetition"),
            *("examples", "classifiers", "quality", "selected", "duplicate_paragraphs", "consolidated", "held_out"),
            *("contamination", "decontaminated", "contamination_left", "tokenized", "checkpoints", "evaluation"),
            *("generated", "report"),
        ]
    )
    as_cut = [label if len(label) <= 18 else f"{label[:8]}…{label[-9:]}" for label in labels]
    assert len(set(as_cut)) == len(specs)


def test_experiments_that_share_a_step_share_its_asset() -> None:
    def experiment(name: str) -> tuple[Step, ...]:
        pages = Step(name="raw/pages", fn=toy_steps.make, config=ToyConfig())
        return (Step(name=f"tokenized/{name}", fn=toy_steps.make, config=ToyConfig(input_path=output_path_of(pages))),)

    experiments = Experiments({name: experiment(name) for name in ("a", "b")}, {})
    definitions = assemble(experiments)
    keys = {name: set(definitions.resolve_job_def(name).asset_layer.selected_asset_keys) for name in ("a", "b")}
    assert keys == {name: {dg.AssetKey(["pages", "raw"]), dg.AssetKey([name, "tokenized"])} for name in ("a", "b")}


def test_the_selection_of_a_step_finds_its_asset_and_all_that_it_needs() -> None:
    graph = build_graph(quickstart())
    assets = build_assets(build_graph(quickstart()))
    for node in graph:
        [key] = dg.AssetSelection.from_string(selection_of(node)).resolve(assets)
        assert key == asset_key(node)
    everything = dg.AssetSelection.from_string('+key:"quickstart/report"').resolve(assets)
    assert len(everything) == len(assets)
    attributes = dg.AssetSelection.from_string('key:"quickstart/attributes/*"').resolve(assets)
    assert len(attributes) == 7


def test_op_names_are_different_for_different_names() -> None:
    names = ["a/b", "a_b", "a__b", "a/_b", "a_/b", "a-b", "a.b", "a=b", "a/b_", "a___b"]
    assert len({op_name(name) for name in names}) == len(names)


def test_a_name_of_any_letters_is_an_asset() -> None:
    [built] = build_assets(build_graph([Step(name="raw/ünï-código", fn=toy_steps.make, config=ToyConfig())]))
    [spec] = built.specs
    assert (spec.key.path, spec.group_name) == (["ünï-código", "raw"], "_n__c_digo")


def test_two_steps_of_one_key_are_refused() -> None:
    with pytest.raises(ConfigError, match="Steps 'toy/a' and 'toy/b' have the same asset key 'k'"):
        build_assets(build_graph([toy("a", key=("k",)), toy("b", key=("k",))]))


def test_a_name_that_is_the_key_of_another_is_refused() -> None:
    steps = [Step(name=name, fn=toy_steps.make, config=ToyConfig()) for name in ("pages/raw", "raw/pages")]
    with pytest.raises(ConfigError, match="Steps 'pages/raw' and 'raw/pages' have the same asset key 'pages/raw'"):
        build_assets(build_graph(steps))


def test_an_asset_may_read_one_whose_name_has_values_in_it() -> None:
    """Dagster makes names of inputs from keys, and takes letters, digits and "_" alone."""
    sweep = toy("sweep/lr=3e-4,width=64")
    _, best = build_assets(build_graph([toy("best", reads=sweep)]))
    assert best.asset_deps == {dg.AssetKey(["toy", "best"]): {dg.AssetKey(["toy", "sweep", "lr=3e-4,width=64"])}}


def test_a_lambda_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="Define it at the top level"):
        build_assets(build_graph([toy("a", lambda config: None)]))


def test_a_config_that_is_not_json_names_step_and_field() -> None:
    with pytest.raises(ValueError, match=r"Step 'toy/a' config.note is <object"):
        build_assets(build_graph([Step(name="toy/a", fn=toy_steps.make, config=ToyConfig(note=object()))]))  # type: ignore[arg-type]


def test_a_chain_that_dagster_could_not_take_is_refused_before_it_tries() -> None:
    step = toy("s0")
    for i in range(1, MAX_CHAIN + 1):
        step = toy(f"s{i}", reads=step)
    with pytest.raises(ConfigError, match=f"ends a chain of {MAX_CHAIN + 1} steps, and Dagster takes at most"):
        build_assets(build_graph([step]))


@pytest.mark.long
def test_the_longest_chain_that_we_allow_is_one_that_dagster_takes() -> None:
    step = toy("s0")
    for i in range(1, MAX_CHAIN):
        step = toy(f"s{i}", reads=step)
    definitions = dg.Definitions(
        assets=build_assets(build_graph([step])), jobs=[dg.define_asset_job("job", "*")], resources=resources()
    )
    assert len(definitions.resolve_job_def("job").nodes_in_topological_order) == MAX_CHAIN


MOST, MOST_OF_AN_ASSET = 0.55, 0.017
LOADING = """
import sys
calls = 0
def count(frame, event, arg):
    global calls
    calls += event in ("call", "c_call")
sys.setprofile(count)
import dagster
of_dagster = calls
import marin_assets.definitions
sys.setprofile(None)
assets = len(list(marin_assets.definitions.defs.resolve_all_asset_keys()))
print((calls - of_dagster) / of_dagster, assets, *sys.modules)
"""


def test_the_code_location_loads_in_time_that_grows_with_its_assets_alone_and_loads_nothing_heavy(
    tmp_path: Path,
) -> None:
    """Of the calls of functions of Dagster's import, it makes half, and 1/60 more for each asset: 3.5 with 182 assets,
    six sensors, three schedules. Times vary twofold; calls vary with the modules that are compiled already."""
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True, cwd=tmp_path)
    ratio, assets, *modules = done.stdout.split()
    heavy = {"ray", "jax", "numpy", "pandas", "pyarrow", "levanter", "transformers", "torch", "datasets", "lm_eval"}
    assert not heavy & set(modules)
    assert float(ratio) < MOST + MOST_OF_AN_ASSET * int(assets)


def test_an_experiment_that_does_not_import_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import marin_assets.experiments as folder
    from marin_assets.catalog.experiments_folder import load_experiments

    (tmp_path / "zz_broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "zz_empty.py").write_text("")
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart/__init__.py").touch()
    (tmp_path / "apart/zz_inside.py").write_text((Path(folder.__file__).parent / "two_steps.py").read_text())
    (tmp_path / "apart/zz_wrong.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "zz_clash.py").write_text(
        "import dataclasses\n"
        "from marin_assets import versioned\n"
        "from marin_assets.experiments.two_steps import *\n"
        "def steps():\n"
        "    return [Step(name='two_steps/data', fn=make_numbers, config=NumbersConfig(n=versioned(7)))]\n"
    )
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    experiments = load_experiments()
    assert {"two_steps", "quickstart"} <= experiments.steps.keys()
    assert "nothing_of_this_name" in experiments.left_out["zz_broken"]
    assert "has no function steps()" in experiments.left_out["zz_empty"]
    assert "nothing_of_this_name" in experiments.left_out["zz_wrong"]
    assert len(experiments.steps["zz_inside"]) == 2, "a file in a folder"
    assert "differ in n (100 and 7)" in experiments.left_out["zz_clash"]
