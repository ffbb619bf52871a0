"""Licences and sizes of downloaded data add up along a lineage: in plans, in records' facts, and on pages of assets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets import THIS_OUTPUT_PATH, ConfigError, Origin, Step, output_path_of, versioned
from marin_assets.assets.factory import build_assets
from marin_assets.assets.metadata.materialization import materialization_metadata
from marin_assets.defaults import default_download, default_download_hf
from marin_assets.plan.plan import Planned, plan
from marin_assets.plan.record_facts.origins import recorded_origins, total_of_lineages
from marin_assets.plan.render.json_fields import plan_as_json
from marin_assets.plan.render.page import page_of
from marin_assets.plan.render.text import lines_of
from marin_assets.step.graph import Node, build_graph
from marin_resources.orchestrator.produce import Produced
from marin_resources.types.output import Observed
from marin_resources.types.record import Record

WEB = Origin(name="lab/web", licence="ODC-By-1.0", bytes=1_200_000_000_000, homepage="https://hub.example/lab/web")
MATH = Origin(name="lab/math", licence="CC-BY-4.0", bytes=34_000_000_000)


@dataclass(frozen=True, kw_only=True)
class Config:
    inputs: Sequence[str] = ()
    x: int = versioned(0)
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: Config) -> None:
    """Never run."""


def step(name: str, *inputs: Step, **fields: Any) -> Step:
    return Step(name=name, fn=do_nothing, config=Config(inputs=[output_path_of(i) for i in inputs]), **fields)


@pytest.fixture
def trained() -> Step:
    """A model of a web corpus, which two steps read, of mathematics, and of data of which nothing is known."""
    web = step("raw/web", origin=WEB)
    math, talk = step("raw/math", origin=MATH), step("raw/talk", origin=Origin(name="lab/talk"))
    kept, dropped = step("documents/kept", web), step("documents/dropped", web)
    return step("checkpoints/m", kept, dropped, math, talk)


def nodes_of(*steps: Step) -> dict[str, Node]:
    return {node.name: node for node in build_graph(steps)}


def plan_of(*steps: Step) -> list[Planned]:
    graph = build_graph(steps)
    return plan(graph, {node.output: Observed(path=f"/p/{node.name}") for node in graph})


SUM = "from 3 data sets: 1.2 TB and 1 of unknown size, under CC-BY-4.0, ODC-By-1.0 and 1 of unknown licence"


def test_a_lineage_has_each_data_set_once(trained: Step) -> None:
    nodes = nodes_of(trained)
    assert nodes["documents/kept"].origins == {"raw/web": WEB}
    assert set(nodes["checkpoints/m"].origins) == {"raw/web", "raw/math", "raw/talk"}
    total = total_of_lineages(nodes.values())
    assert (total.data_sets, total.bytes, total.sizes_unknown) == (3, 1_234_000_000_000, 1)
    assert (total.licences, total.licences_unknown) == (("CC-BY-4.0", "ODC-By-1.0"), 1)
    assert total.describe() == SUM


def test_the_plan_names_each_data_set_and_ends_with_their_sum(trained: Step) -> None:
    lines = list(lines_of(plan_of(trained)))
    assert lines[-1] == f"6 to run; {SUM}"
    shown = [line.strip() for line in lines]
    assert "lab/web: 1.2 TB, ODC-By-1.0, https://hub.example/lab/web" in shown
    assert "lab/talk: size unknown, licence unknown" in shown


def test_a_plan_of_many_steps_has_the_sum_of_a_group() -> None:
    raw = [step(f"raw/{i}", origin=Origin(name=f"lab/{i}", licence="CC0-1.0", bytes=10**9)) for i in range(20)]
    lines = list(lines_of(plan_of(*raw)))
    assert lines[2].strip() == "from 20 data sets: 20.0 GB, under CC0-1.0"


def test_the_plan_as_json_and_as_a_page_has_them_too(trained: Step) -> None:
    planned = plan_of(trained)
    plan_json = plan_as_json(planned, "/p")
    assert plan_json["raw_data"] == {
        "data_sets": 3,
        "bytes": 1_234_000_000_000,
        "sizes_unknown": 1,
        "licences": ["CC-BY-4.0", "ODC-By-1.0"],
        "licences_unknown": 1,
    }
    (kept,) = [output for output in plan_json["outputs"] if output["step"] == "documents/kept"]
    assert kept["origins"] == {"raw/web": WEB.to_dict()}
    page = page_of(planned, "/p", "m")
    assert SUM in page
    assert "lab/math: 34.0 GB, CC-BY-4.0" in page


def test_a_plan_without_downloads_says_nothing_of_them() -> None:
    assert list(lines_of(plan_of(step("a"))))[-1] == "1 to run"
    assert recorded_origins(nodes_of(step("a"))["a"]) == {}


def test_the_record_keeps_what_was_known(trained: Step) -> None:
    record = Record.from_dict(recorded_origins(nodes_of(trained)["checkpoints/m"]))
    assert record.origins["raw/web"].licence == "ODC-By-1.0"
    assert record.origins["raw/web"].bytes == 1_200_000_000_000
    assert record.origins["raw/talk"].licence is None


def test_an_assets_page_has_licences_bytes_and_a_row_for_each_data_set(trained: Step) -> None:
    observed = Observed(path="/p/m", record=Record.from_dict({}))
    origins = nodes_of(trained)["checkpoints/m"].origins
    page = materialization_metadata(Produced(observed=observed, reused=True), origins=origins)
    assert page["licences"] == "CC-BY-4.0, ODC-By-1.0 and 1 of unknown licence"
    assert (page["raw_bytes"], page["raw_sizes_unknown"]) == (1_234_000_000_000, 1)
    rows = [row.data for row in page["raw_data"].records]
    assert {row["data set"] for row in rows} == {"lab/web", "lab/math", "lab/talk"}
    assert "licences" not in materialization_metadata(Produced(observed=observed, reused=True))


def test_an_asset_shows_them_before_it_is_materialized(trained: Step) -> None:
    (asset,) = [asset for asset in build_assets(build_graph([trained])) if asset.key.path[-1] == "checkpoints"]
    (metadata,) = asset.metadata_by_key.values()
    assert metadata["marin/raw_data"] == SUM


def test_an_origin_changes_no_version() -> None:
    assert nodes_of(step("a", origin=WEB))["a"].version == nodes_of(step("a"))["a"].version


def test_two_origins_of_one_step_are_reported() -> None:
    first, second = step("raw/web", origin=WEB), step("raw/web", origin=MATH)
    (sentence,) = build_graph([first, second]).drift
    assert "different origins" in sentence


def test_a_chain_of_thousands_is_linear() -> None:
    last = step("raw/web", origin=WEB)
    for number in range(3000):
        last = step(f"c/{number}", last)
    nodes = list(build_graph([last]))
    assert len({id(node.origins) for node in nodes}) == 1  # one mapping, shared


def test_data_of_others_have_an_origin_even_if_nobody_states_one() -> None:
    assert default_download_hf("t", "lab/texts").origin == Origin(
        name="lab/texts", homepage="https://huggingface.co/datasets/lab/texts"
    )
    assert default_download("t", "https://data.example/t.jsonl").origin == Origin(name="https://data.example/t.jsonl")
    assert default_download("t", "/data/ours").origin is None
    assert default_download("t", "/data/theirs", origin=MATH).origin is MATH


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "An origin has name='', expected a text."),
        ({"name": "a", "licence": ""}, "An origin has licence='', expected a text. Leave out what is not known."),
        ({"name": "a", "bytes": -1}, "The origin 'a' has bytes=-1, expected a whole number of bytes"),
        ({"name": "a", "bytes": "1 TB"}, "The origin 'a' has bytes='1 TB', expected a whole number of bytes"),
    ],
)
def test_a_wrong_origin_is_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Origin(**fields)
    assert sentence in str(error.value)


def test_a_text_is_no_origin() -> None:
    with pytest.raises(ConfigError, match=r"Step 'a' has origin='CC0', expected Origin\(name=…\) or None\."):
        step("a", origin="CC0")
