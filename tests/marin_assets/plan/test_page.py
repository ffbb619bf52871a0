"""A plan as a page and as an image: a coloured node for each step, or for steps that are alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from toy_steps import toy

from marin_assets.assets.plan_job import table_of
from marin_assets.plan.plan import Planned
from marin_assets.plan.prepare import prepare_plan
from marin_assets.plan.render.boxes import DRAWN
from marin_assets.plan.render.page import page_of
from marin_assets.plan.render.picture import image_of
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of
from marin_resources.storage.output.store import Store


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    runs: tuple[str, ...]


def tabulate(config: TableConfig) -> None:
    """Nothing is computed here."""


def table(runs: list[Step], name: str) -> Step:
    return Step(name=f"toy/{name}", fn=tabulate, config=TableConfig(runs=tuple(map(output_path_of, runs))))


def complete(store: Store, steps: list[Step]) -> None:
    for node in build_graph(steps):
        claim = store.claim(node.output, attempt=1, resumable=False, run_id=None)
        Path(claim.path, "value.txt").write_text("1")
        store.publish(claim, {"version": node.version.as_dict(), "name": node.name}, {"value": 1})


def planned(store: Store, steps: list[Step]) -> list[Planned]:
    graph = build_graph(steps)
    return prepare_plan(graph, store, list(graph))


def titles(svg: str) -> list[str]:
    return re.findall(r'<text class="title"[^>]*>([^<]*)<', svg)


def test_each_node_links_to_its_group_and_steps_that_are_alike_are_one_node(disk_prefix: str) -> None:
    store, root = Store(disk_prefix), toy("root")
    complete(store, [root])
    plan = planned(store, [root, *(toy(f"leaf{i}", reads=root, value=i) for i in range(3)), toy("alone")])
    page = page_of(plan, store.prefix, "<mine>")
    assert "<title>Plan: &lt;mine&gt;</title>" in page
    assert '<meta name="viewport"' in page
    assert titles(page) == ["root", "leaf0 and 2 more", "alone"]
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in re.findall(r'href="([^"]+)"', page)} <= set(ids)


def test_the_steps_of_a_sweep_that_a_table_reads_are_one_node(disk_prefix: str) -> None:
    root = toy("root")
    few, many = ([toy(f"{name}{i}", reads=root, value=i) for i in range(count)] for name, count in (("a", 3), ("b", 4)))
    tables = [table(few, "few"), table(many, "many")]
    page = page_of(planned(Store(disk_prefix), [root, *few, *many, *tables]), disk_prefix, "sweeps")
    assert titles(page) == ["root", "a0", "a1", "a2", "b0 and 3 more", "few", "many"]


def test_a_large_plan_is_drawn_in_part_and_one_without_work_not_at_all(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    steps = [toy("s0")]
    for i in range(1, 2 * DRAWN):
        steps.append(toy(f"s{i}", reads=steps[i - 1]))
    page = page_of(planned(store, steps), store.prefix, "long")
    assert len(titles(page)) == DRAWN
    assert f"{DRAWN} more steps are in the list below." in page
    complete(store, steps)
    assert "Every step is reused." in page_of(planned(store, steps), store.prefix, "long")
    assert image_of(planned(store, steps)) == ""
    assert page_of([], store.prefix, "none").count("No steps.") == 1


def test_an_image_is_a_file_of_its_own_with_its_colours_and_no_wider_than_the_dialogue(disk_prefix: str) -> None:
    store, root = Store(disk_prefix), toy("root")
    wide = [toy(f"a-long-name-{i}", reads=toy(f"b-{i}", reads=root, value=i)) for i in range(9)]
    svg = image_of(planned(store, wide))
    picture = ElementTree.fromstring(svg)
    assert int(picture.attrib["width"]) == 1000
    assert ".node.run rect{fill:" in svg


def test_a_table_shows_a_reason_as_it_is(disk_prefix: str) -> None:
    store = Store(disk_prefix)
    first = toy("a", note="", value=1)
    complete(store, [first])
    [*_, row] = table_of(planned(store, [toy("a", value=2)])).splitlines()
    assert row.startswith("| **run** | 1 | `toy/a` | value: 1 -&gt; 2 |")


def test_a_page_of_many_steps_begins_with_the_root_and_what_changed_in_it(disk_prefix: str) -> None:
    store = Store(disk_prefix)

    def steps(value: int) -> list[Step]:
        root = toy("root", value=value)
        return [root, *(toy(f"leaf{i}", reads=root) for i in range(100))]

    complete(store, steps(1))
    page = page_of(planned(store, [*steps(2), toy("other")]), store.prefix, "many")
    before, _, rest = page.partition("<svg")
    assert "run toy/root</a>: value: 1 -&gt; 2" in before
    assert "run toy/leaf0 and 99 more steps</a>: &#x27;toy/root&#x27; changed (value: 1 -&gt; 2)" in before
    assert before.index("toy/root") < before.index("toy/leaf0") < before.index("toy/other")
    assert before.count("<li>") == 3
    assert rest
