"""What decides which cluster of a fleet computes a step, as its config has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import object_stores
import pytest
from fleets import use, write_catalogue
from toy_steps import toy

from marin_assets import THIS_OUTPUT_PATH, InputName, Step, mirrored, output_path_of, versioned
from marin_assets.assets.body.request import copies_for, refuse_foreign_urls
from marin_assets.plan.plan import Action, plan
from marin_assets.plan.prepare import with_sites
from marin_assets.plan.sites.inputs import external_names, mirrored_names, parts_read, urls_in
from marin_assets.plan.sites.needs import needs_of, needs_of_readers
from marin_assets.step.graph import Graph, Node, build_graph
from marin_resources.hardware.resources import cpu, tpu
from marin_resources.ray_tpu.fleet.fleet import Fleet, fleet_from_env
from marin_resources.ray_tpu.site import Move, NoSiteError, Site
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Observed


@dataclass(frozen=True, kw_only=True)
class ReadsConfig:
    inputs: list[object] = field(default_factory=list)
    output_path: str = THIS_OUTPUT_PATH


def read(config: ReadsConfig) -> None:
    """Do nothing."""


def reading(*inputs: object, **of_step: object) -> Step:
    return Step(name="reads", fn=read, config=ReadsConfig(inputs=list(inputs)), **of_step)  # type: ignore[arg-type]


def node_of(step: Step) -> tuple[Node, Graph]:
    graph = build_graph([step])
    return graph[step], graph


def test_what_a_config_names() -> None:
    made = toy("made")
    node, _ = node_of(
        reading(
            InputName.hardcoded("raw/web"),
            InputName.hardcoded("gs://theirs/raw"),
            mirrored(InputName.hardcoded("raw/code")),  # type: ignore[arg-type]
            mirrored("raw/books"),
            {"url": versioned(["gs://others/a", "no URL"])},
            "https://example.org/x",
            output_path_of(made, "train") / "part-0",
        )
    )
    assert external_names(node) == ["raw/web", "gs://theirs/raw"]
    assert mirrored_names(node) == ["raw/code", "raw/books"]
    assert urls_in(node) == ["gs://theirs/raw", "gs://others/a", "https://example.org/x"]
    assert parts_read(node) == {"toy/made": ("train/part-0",)}


def test_a_step_that_is_read_whole_counts_whole() -> None:
    made = toy("made")
    for whole in (made, output_path_of(made)):
        assert parts_read(node_of(reading(whole, output_path_of(made, "train")))[0]) == {}


def test_only_the_parts_that_are_read_count(tmp_path: Path) -> None:
    store, made = Store(str(tmp_path / "prefix")), toy("made")
    node, graph = node_of(reading(output_path_of(made, "train"), output_path_of(made, "notes.txt")))
    output = graph[made].output
    claim = store.claim(output, attempt=1, resumable=False, run_id=None)
    for name, size in {"train/a": 100, "train/b": 20, "trained": 4000, "notes.txt": 3}.items():
        write_bytes(f"{claim.path}/{name}", b"x" * size)
    store.publish(claim, {}, {})
    found = needs_of(node, graph, store, store.look([output]) and {"toy/made": store.look([output])[output]}, {})
    assert found.size_of("toy/made") == 123
    assert found.places == {"toy/made": claim.path}


def test_what_is_copied_is_what_the_config_names() -> None:
    def move(relative: str) -> Move:
        is_output = relative != "raw/web"
        return Move(what=relative, relative=relative, source="us-east5", bytes=1, dollars=0.0, is_output=is_output)

    site = Site(
        cluster="central",
        region="us-central2",
        prefix="gs://central",
        why="",
        moves=(move("made-1"), move("raw/web"), move("ordered-2"), move("mirrored-3")),
    )
    config = {"a": "gs://central/made-1/train", "b": ["gs://central/raw/web", "gs://central/made-10", "mirror://x"]}
    assert copies_for(site, config) == (
        "mirror://made-1/train",
        "mirror://made-1/.executor_info",
        "mirror://raw/web",
    )


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    prefixes = {name: object_stores.gcs_prefix() for name in ("central", "east", "west")}
    use(write_catalogue(tmp_path, **prefixes), monkeypatch)
    found = fleet_from_env(None, prefixes["central"])
    assert found is not None
    return found


def planned(fleet: Fleet, step: Step) -> list[tuple[str, Action, str]]:
    graph, store = build_graph([step]), Store(fleet.home)
    observed = store.look(node.output for node in graph)
    return [
        (item.node.name, item.action, item.site.describe() if item.site else item.reason)
        for item in with_sites(plan(graph, observed), graph, store, fleet)
    ]


def test_an_input_that_is_made_by_the_same_plan_is_where_its_own_step_goes(fleet: Fleet) -> None:
    trained = toy("trained", resources=tpu("v5p-64"))
    read_again = toy("read", reads=trained, resources=tpu("v4-8"))
    assert planned(fleet, read_again) == [
        ("toy/trained", Action.RUN, "on east, the only cluster with TPU v5p-64"),
        (
            "toy/read",
            Action.RUN,
            "on central, the only cluster with TPU v4-8; moves 'toy/trained' from us-east5, whose size is not known "
            "yet",
        ),
    ]


def test_what_no_cluster_has_blocks_the_step(fleet: Fleet) -> None:
    trained = toy("trained", resources=tpu("v5e-256"))
    [(_, action, reason), after] = planned(fleet, toy("read", reads=trained))
    assert action is Action.BLOCKED
    assert "which no cluster of MARIN_CLUSTER has" in reason
    assert after == ("toy/read", Action.BLOCKED, "needs 'toy/trained', which is blocked")


def test_raw_data_are_found_in_whichever_region_has_them(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIN_MIRROR_PRICES", "us-east1>us-east5=1000000,us-east1>us-central2=1000000")
    west = fleet.member("west").cluster.prefix
    write_bytes(f"{west}/raw/web/a.txt", b"x" * 100_000)
    [(_, _, found)] = planned(fleet, reading(InputName.hardcoded("raw/web")))
    assert found == "on west, where its inputs are"


def test_without_a_fleet_a_url_of_another_region_is_refused_where_regions_are_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = object_stores.gcs_bucket("EUROPE-WEST4")
    node, _ = node_of(reading(f"gs://{theirs.name}/raw"))
    for name in ("MARIN_MIRROR_PREFIXES", "MARIN_REGION", "MARIN_FOREIGN_BUCKETS"):
        monkeypatch.delenv(name, raising=False)
    refuse_foreign_urls(node)
    monkeypatch.setenv("MARIN_PREFIX", "gs://mine")
    monkeypatch.setenv("MARIN_MIRROR_PREFIXES", "us-east5=gs://mine,us-east1=gs://more")
    with pytest.raises(NoSiteError, match=r"would run on us-east5 and its config has .*, which is in europe-west4"):
        refuse_foreign_urls(node)
    theirs.forget()


def test_an_output_of_marins_has_no_known_size(tmp_path: Path) -> None:
    store, made = Store(str(tmp_path)), toy("made")
    node, graph = node_of(reading(output_path_of(made)))
    found = needs_of(node, graph, store, {"toy/made": Observed(path=f"{tmp_path}/made")}, {})
    assert found.size_of("toy/made") is None


def test_a_chain_is_where_its_last_step_can_run(fleet: Fleet) -> None:
    raw = toy("raw")
    words = toy("words", reads=raw)
    model = toy("model", reads=words, resources=tpu("v6e-4"))
    assert [(name, why.partition(",")[0]) for name, _, why in planned(fleet, model)] == [
        ("toy/raw", "on west"),
        ("toy/words", "on west"),
        ("toy/model", "on west"),
    ]
    assert [why for name, _, why in planned(fleet, model) if name == "toy/raw"] == [
        "on west, where its readers can run"
    ]


def test_the_needs_of_readers_are_found_once_and_the_direct_ones_first() -> None:
    raw = toy("raw")
    words = toy("words", reads=raw)
    models = [toy(f"model{i}", reads=words, resources=tpu("v6e-4"), value=i) for i in range(3)]
    counts = toy("counts", reads=raw, resources=cpu(8))
    graph = build_graph([*models, counts])
    found = needs_of_readers(graph)
    assert [each.resources for each in found[graph[raw]]] == [cpu(8), cpu(), tpu("v6e-4")]
    assert [each.resources for each in found[graph[words]]] == [tpu("v6e-4")]
    assert found[graph[counts]] == ()


def test_a_chain_of_a_thousand_steps_takes_no_deep_calls() -> None:
    steps = [toy("s0")]
    for number in range(1, 1000):
        steps.append(toy(f"s{number}", reads=steps[-1], resources=cpu(number % 3 + 1)))
    graph = build_graph(steps)
    assert len(needs_of_readers(graph)[graph[steps[0]]]) == 3
