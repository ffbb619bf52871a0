"""The page of an experiment in each state: complete, running, failed, partitioned, never run, damaged, large."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from experiments_for_pages import KEYS, drifting_experiment, fail_node, partitioned_experiment, write_record
from partition_steps import keys, part
from png_pictures import picture_with_text
from recorded_steps import Recorded, WorkConfig, chain, step, work

from marin_assets.experiment_page.from_graph import steps_of_graph
from marin_assets.experiment_page.from_record import steps_of_record
from marin_assets.experiment_page.page import page_of
from marin_assets.plan.render.boxes import DRAWN
from marin_assets.stages.report.numbers import check_numbers
from marin_assets.stages.report.records import read_records
from marin_assets.step.graph import Node, build_graph
from marin_assets.step.origin import Origin
from marin_assets.step.partitions.sets import static
from marin_assets.step.step import Step
from marin_assets.step.values import this_partition
from marin_resources.storage.output.attempts import log_path
from marin_resources.storage.output.store import Claim, Store

OUTSIDE = re.compile(r'(?:src|href)="(?!#|data:image/png|https://)|<script|<link|@import|url\(|\son\w+=')


@pytest.fixture
def here(disk_prefix: str) -> Recorded:
    return Recorded(Store(disk_prefix))


def page(here: Recorded, *steps: Step) -> str:
    graph = build_graph(steps)
    html = page_of(steps_of_graph("mine", graph, list(graph), here.store))
    Structure(html)
    assert here.store.prefix not in html
    return html


def node_of(step: Step) -> Node:
    return build_graph([step])[step]


class Structure(HTMLParser):
    """Checks that a page needs no other file, its elements are closed in order, and its links have targets."""

    VOID = frozenset({"meta", "br", "img", "rect", "circle", "path", "line", "polyline"})

    def __init__(self, html: str) -> None:
        super().__init__()
        assert OUTSIDE.search(html) is None
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.feed(html)
        assert self.stack == []
        assert len(self.ids) == len(set(self.ids))
        assert self.links <= set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in self.VOID:
            self.stack.append(tag)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if str(values.get("href", "")).startswith("#"):
            self.links.add(str(values["href"])[1:])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def text_of(html: str) -> str:
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))


def headings(html: str) -> list[str]:
    return re.findall(r'<h2 id="([^"]+)"', html)


def test_a_complete_experiment_has_its_sections_in_order_and_numbers_that_equal_the_records(here: Recorded) -> None:
    model = step("checkpoints/model", 1, step("raw/web", 1, origin=Origin(name="lab/web", licence="CC-BY-4.0")))
    graph = here.make(
        model, result={"loss_start": 8.25, "loss_end": 4.0587, "steps": 300, "url": "https://wandb.ai/a/b"}
    )
    path = here.store.locate(graph[model].output)
    rows: list[dict[str, Any]] = [{"step": place, "train/loss": 8 - place / 100} for place in range(300)]
    Path(path, "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    html = page(here, model)
    wanted = ["loss-checkpoints/model", "dag", "changes", "steps", "sources", "details", "provenance"]
    assert [name for name in headings(html) if name in wanted] == wanted
    assert "2 steps: 2 complete" in html
    records = read_records({node.name: here.store.locate(node.output) for node in graph})
    numbers, wrong = check_numbers(html, records)
    assert (numbers >= 10, wrong) == (True, [])
    text = text_of(html)
    for shown in ("lab/web", "CC-BY-4.0", "from 1 data set", "8.250", "4.059", graph[model].version.hash, "300"):
        assert shown in text
    assert '<a href="https://wandb.ai/a/b">' in html
    assert page(here, model) == html


def test_what_changed_since_the_last_version_is_shown_to_the_field_also_of_a_complete_step(here: Recorded) -> None:
    here.make(chain("a b c"), finished_at="2026-01-02T00:00:00+00:00")
    html = text_of(page(here, chain("a b c", b=2)))  # never run
    assert "value: 1 -> 2" in html
    here.make(chain("a b c", b=2))
    html = text_of(page(here, chain("a b c", b=2)))  # complete
    assert "3 steps: 3 complete" in html
    assert "value: 1 -> 2" in html
    assert re.search(r"Only because of their inputs:\s+chain/c\s+\.", html)
    assert "1 step has no earlier version." in html


def test_an_experiment_that_never_ran_is_a_page(here: Recorded) -> None:
    html = page(here, chain("a b c"))
    assert "3 steps: 3 not computed" in html
    assert "Nothing is computed yet." in html
    assert 'id="attention"' not in html


def begin(here: Recorded, node: Node, log: str) -> Claim:
    claim = here.claim(node)
    Path(log_path(claim.path, claim.attempt)).write_text(log)
    return claim


def test_a_failed_step_comes_first_with_its_last_error_line_and_the_end_of_its_log(here: Recorded) -> None:
    failing = step("b/failing", 1, step("a/data"))
    graph = build_graph([failing])
    here.publish(next(iter(graph)), graph, {})
    claim = begin(here, graph[failing], "".join(f"line {number}\n" for number in range(20_000)))
    error = "Traceback (most recent call last):\n  File x\n\nValueError: 3 rows of <b>x</b> are bad\n"
    assert here.store.fail(claim, here.facts_of(graph[failing], graph), error, "")
    html = page(here, failing)
    assert headings(html)[0] == "attention"
    [card] = re.findall(r'<section class="card attention failed">.*?</section>', html, re.DOTALL)
    assert "ValueError: 3 rows of &lt;b&gt;x&lt;/b&gt; are bad" in card
    assert "Traceback" not in card
    assert "<details><summary>last lines of its log</summary>" in card
    assert ("line 19999" in card, "line 19960\n" in card, "line 19959\n" in card) == (True, True, False)
    assert "2 steps: 1 complete, 1 failed" in html


def test_a_running_step_shows_its_progress_and_not_its_machine(here: Recorded) -> None:
    last = chain("a b")
    graph = build_graph([last])
    claim = begin(here, next(iter(graph)), "loading\nstep 3 of 9\n")
    try:
        html = page(here, last)
        assert "2 steps: 1 running, 1 not computed" in html
        [card] = re.findall(r'<section class="card attention running">.*?</section>', html, re.DOTALL)
        assert "attempt 1, for " in card
        assert ": step 3 of 9" in card
    finally:
        claim.lease.release()
    assert "1 dead" in page(here, last)  # the worker has neither finished nor failed


def test_partitions_are_one_row_and_one_box_with_their_states(here: Recorded, tmp_path: Path) -> None:
    months = part("months", static("2026-01", "2026-02", "2026-03"), tmp_path / "calls")
    node = node_of(months)
    graph = build_graph([months])
    here.publish(node.at("2026-01"), graph, {})
    here.store.fail(here.claim(node.at("2026-02")), here.facts_of(node.at("2026-02"), graph), "KeyError: 'x'", "")
    html = page(here, months)
    assert "1 step, 3 outputs: 1 complete, 1 failed, 1 not computed" in html
    assert "<b>parts/months[2026-02]</b>" in html
    text = text_of(html)
    assert "failed 1 of 3" in text
    for row in (r"2026-01\s+complete", r"2026-02\s+failed", r"2026-03\s+not computed"):
        assert re.search(row, text)
    dynamic = part("none", static("x"), tmp_path / "calls")
    assert "1 not computed" in page(here, dynamic)


def of_record(here: Recorded, path: str) -> str:
    html = page_of(steps_of_record(path, writes=False))
    Structure(html)
    assert here.store.prefix not in html
    return html


def rows_of(html: str, anchor: str) -> list[list[str]]:
    """The cells of the table after this id, row by row."""
    table = html[html.index(f'id="{anchor}"') :].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)
    return [[" ".join(text_of(cell).split()) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]


def test_partitions_are_compared_with_the_previous_one_and_across_steps(here: Recorded) -> None:
    html = of_record(here, partitioned_experiment(here))
    assert "2 steps, 5 outputs: 4 complete, 1 failed" in html
    assert rows_of(html, "partitions") == [
        ["", "raw/months", "documents/months"],
        ["2026-01", "complete", "complete"],
        ["2026-02", "complete", "failed"],
        ["2026-03", "complete", ""],
    ]
    rows = rows_of(html, "partitions-raw/months")[1:]
    assert [row[:2] for row in rows] == [[key, "complete"] for key in KEYS[:3]]
    assert [row[2].partition(" documents")[::2] for row in rows] == [("1,000", ""), ("1,500", " +50 %"), ("1,500", "")]
    assert [row[5] for row in rows] == ["", "", "another Python; another uv.lock (than 2026-02)"]
    assert "KeyError: 'url'" in html
    assert 'value: "before" -> "x"' in text_of(html)  # an earlier version of the partitioned step


@pytest.mark.long
def test_of_many_partitions_the_unfinished_and_the_last_ones_are_shown(here: Recorded) -> None:
    step = Step(
        name="raw/days", fn=work, partitions=static(*keys(310)), config=WorkConfig(value=this_partition(), note="x")
    )
    graph = build_graph([step])
    for place, key in enumerate(keys(310)):
        if place == 7:
            fail_node(here, graph[step].at(key), "KeyError: 'x'", ["x"])
        else:
            here.publish(graph[step].at(key), graph, {}, {"rows": 100 + place})
    began_s = time.process_time()
    html = of_record(here, write_record(here, "days", step))
    assert time.process_time() - began_s < 5
    assert "1 step, 310 outputs: 309 complete, 1 failed" in html
    rows = rows_of(html, "partitions-raw/days")[1:]
    assert [row[0] for row in rows] == ["k0007", *keys(310)[-59:]]
    assert rows[-1][2] == "409 rows +0.2 %"
    assert "250 more are not shown" in text_of(html)


def test_drift_is_shown_where_it_exists_from_records_and_from_the_code(here: Recorded) -> None:
    html = text_of(of_record(here, drifting_experiment(here)))
    assert re.search(r"raw/news\s+The output was computed on .* and again since, and its content differs, 64 B", html)
    assert "The input 'raw/news' was computed again, and its content differs from the one read." in html
    done = step("raw/other", 5, note="then")
    here.make(done)
    html = page(here, step("raw/other", 5, note="then"))
    assert 'id="drift"' not in html
    html = text_of(page(here, step("raw/other", 5, note=f"now in {here.store.prefix}")))
    assert "The unversioned field 'note' was 'then' and is 'now in <prefix>' now." in html


def test_the_expectations_of_a_report_are_a_section(here: Recorded) -> None:
    report = step("report/mine", 1)
    rows = [
        {"step": "model", "expected": "acc at least 0.3", "found": 0.31234, "held": True},
        {"step": "<b>data</b>", "expected": "rows at least 5", "found": None, "held": False},
    ]
    here.make(report, result={"summary": [*rows, "no row", {"expected": 3}]})
    html = page(here, report)
    assert rows_of(html, "expectations")[1:] == [
        ["model", "acc at least 0.3", "0.3123", "✓ held"],
        ["<b>data</b>", "rows at least 5", "not recorded", "✗ failed"],
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"prefix": "\0"},
        {"prefix": "/half \ud83d"},
        {"manifest": {"files": 10**400, "bytes": 10**400}},
        {"spent": {"wall_s": float("nan")}},
        {"origins": {"raw": None}},
        {"result": {"scores": 5, "summary": {"x": 1}, "plots": [None, 3], "best": "<b>"}},
        {"fn_name": "../../etc/passwd:x", "git": {"commit": 5}},
    ],
)
def test_a_record_of_an_output_with_odd_values_is_no_error(here: Recorded, odd: dict[str, Any]) -> None:
    made = step("raw/odd")
    path = write_record(here, "odd", made)
    folder = Path(here.store.locate(next(iter(here.make(made))).output))
    record = json.loads(folder.joinpath(".executor_info").read_text())
    for commit in folder.glob(".marin/*"):
        if commit.is_file():
            commit.unlink()
    folder.joinpath(".executor_info").write_text(json.dumps({**record, **odd}))
    html = page_of(steps_of_record(path, writes=False))
    assert "1 step: 1 complete" in html
    Structure(html)


def test_a_plot_outside_of_the_output_is_not_on_the_page(here: Recorded, tmp_path: Path) -> None:
    (tmp_path / "private.png").write_bytes(picture_with_text("x"))
    bad = step("bad")
    names = [str(tmp_path / "private.png"), "../private.png", "plots/../../../private.png", f"file://{tmp_path}/a.png"]
    here.make(bad, result={"plots": names})
    assert "<img" not in page(here, bad)


def test_damaged_files_are_sentences_on_the_page(here: Recorded) -> None:
    good, bad, torn = step("good", 1), step("bad", 2), step("torn", 3)
    for made in (good, bad, torn):
        here.make(made, result={"plots": ["plots/x.png"]})
    paths = {made.name: Path(here.store.locate(node_of(made).output)) for made in (good, bad, torn)}
    paths["bad"].joinpath(".executor_info").write_text('{"name": ')
    paths["good"].joinpath("metrics.jsonl").write_text('{"step": 1, "train/loss": 3}\n{"step": 2, "trai')
    paths["torn"].joinpath("plots").mkdir()
    paths["torn"].joinpath("plots/x.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    html = page(here, good, bad, torn)
    assert "The losses of 'good' cannot be shown: JSONDecodeError" in text_of(html)
    assert "The plots of 'torn' cannot be shown: ValueError: it ends too early" in text_of(html)
    [card] = re.findall(r'<section class="card attention blocked">.*?</section>', html, re.DOTALL)
    assert "bad" in card
    assert "3 steps: 2 complete, 1 blocked" in html


def many(count: int) -> list[Step]:
    root = step("raw/root")
    leaves = [step(f"leaf/part-{number}", number, root) for number in range(count - 2)]
    return [*leaves, step("last/all", 1, *leaves[:100])]


def timed_page(here: Recorded, steps: Sequence[Step]) -> str:
    graph = build_graph(steps)
    began_s = time.process_time()
    html = page_of(steps_of_graph("mine", graph, list(graph), here.store))
    assert time.process_time() - began_s < 5
    assert len(html.encode()) < 2_000_000
    Structure(html)
    return html


def test_two_thousand_steps_are_a_page_of_two_megabytes_in_five_seconds(here: Recorded) -> None:
    html = timed_page(here, many(2_000))
    assert "2,000 steps: 2,000 not computed" in html
    assert "1,960 more are in the table alone." in html
    assert html.count("<tr") > 2_000


@pytest.mark.long
def test_two_thousand_complete_steps_are_too_and_those_that_are_alike_are_one_node(here: Recorded) -> None:
    steps = many(2_000)
    publish_all(here, steps)
    html = timed_page(here, steps)
    assert "2,000 steps: 2,000 complete" in html
    assert titles(html) == ["root", "part-0 and 99 more", "part-100 and 1,897 more", "all"]
    assert "percy" not in html


def test_many_complete_steps_that_are_not_alike_are_drawn_by_kinds(here: Recorded) -> None:
    root = step("raw/root")
    leaves = [step(f"leaf/part-{number}", number, root) for number in range(DRAWN)]
    steps = [step(f"last/score-{number}", number, leaf) for number, leaf in enumerate(leaves)]
    publish_all(here, steps)
    html = timed_page(here, steps)
    assert titles(html) == ["root", f"part-0 and {DRAWN - 1} more", f"score-0 and {DRAWN - 1} more"]


def publish_all(here: Recorded, steps: Sequence[Step]) -> None:
    for node in build_graph(steps):
        claim = here.claim(node, attempt=1)
        here.store.publish(claim, {"name": node.name, "version": node.version.as_dict(), "user": "percy"}, {"rows": 3})


def titles(html: str) -> list[str]:
    return re.findall(r'<text class="title"[^>]*>([^<]*)<', html)
