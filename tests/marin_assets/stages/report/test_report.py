from __future__ import annotations

import base64
import itertools
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from png_pictures import picture_with_text

from marin_assets.experiment_page.from_record import steps_of_record
from marin_assets.experiment_page.page import page_of
from marin_assets.stages.report.dag import NODE_HEIGHT, DagNode, depths, draw_dag, lay_out
from marin_assets.stages.report.numbers import check_numbers, format_number, is_shown_by, parse_number
from marin_assets.stages.report.records import ReportError, flat_numbers, parents_of, read_records
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.step.expectation import expect
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import decode, encode

SCORES = {"instances": 500, "acc": 0.31, "acc_stderr": 0.0207, "chance": 0.25}
CHAIN: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "scores": (
        "evaluation/nano",
        ["model", "held out"],
        {"acc": 0.31, "tasks": 1, "chance": 0.25, "scores": {"held_out": SCORES}},
    ),
    "raw": ("raw/pydoc", [], {"pages": 902, "bytes": 24_312_345, "plots": ["plots/sizes.png"]}),
    "documents": ("documents/pydoc", ["raw"], {"documents": 3249, "bytes": 5_512_399, "rare": 3.2e-7}),
    "model": (
        "checkpoints/nano",
        ["documents"],
        {"steps": 300, "loss_start": 8.25, "loss_end": 4.0587, "loss_ratio": 0.49},
    ),
    "held out": ("evaluation/held-out", ["documents"], {"questions": 500, "is_good": True, "note": "<b>bold</b>"}),
}
PNG = picture_with_text("by percy")


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, str]:
    """Outputs of a chain of five steps, by label."""
    paths = {label: str(tmp_path / f"{name}-{index:06x}") for index, (label, (name, *_)) in enumerate(CHAIN.items())}
    for index, (label, (name, parents, result)) in enumerate(CHAIN.items()):
        record = {
            "format_version": 1,
            "name": name,
            "fn_name": f"marin_assets.stage:{name.replace('/', '_')}",
            "config": {"seed": 0, "path": paths[label]},
            "description": f"Makes {name} & more.",
            "version": {"name": name},
            "identity": "ab" * 16,
            "dependencies": [paths[parent] for parent in parents],
            "output_path": paths[label],
            "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": index == 0},
            "environment": {"lock_digest": "fe" * 32, "python": "3.11.7"},
            "started_at": "2025-11-21T06:20:14.123456+00:00",
            "finished_at": "2025-11-21T06:20:16.423456+00:00",
            "duration_s": 2.3 * (index + 1) ** 3,
            "host": "worker-3",
            "user": "percy",
            "dagster_run_id": "5b4f0a77-0000-0000-0000-000000000000",
            "attempt": 1,
            "result": result,
            "manifest": {"files": 7 + index, "bytes": 10 ** (index + 3) + 17, "digest": "cd" * 32},
        }
        write(Path(paths[label], ".executor_info"), json.dumps(record))
    rows: list[dict[str, Any]] = [{"step": -1, "eval/loss": 8.25}]
    rows += [{"step": step, "train/loss": 4 + 4 * math.exp(-step / 80)} for step in range(2, 300)]
    rows[-1]["eval/loss"] = 4.06
    write(Path(paths["model"], "metrics.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    question = {
        "task": "held_out",
        "doc_id": 0,
        "target": 1,
        "context": "To open a file",
        "choices": ["x", "call open", "y"],
    }
    question |= {"loglikelihoods": [-9.0, -2.0, -4.0], "pick": 1, "acc": 1.0}
    write(Path(paths["scores"], "samples.jsonl"), json.dumps(question) + "\n")
    Path(paths["raw"], "plots").mkdir()
    Path(paths["raw"], "plots/sizes.png").write_bytes(PNG)
    return paths


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def report(outputs: dict[str, str], output_path: Path, **fields: Any) -> tuple[dict[str, Any], str]:
    config = unwrap_versioned_value(ReportConfig(inputs=outputs, output_path=str(output_path), **fields))
    return write_report(config), (output_path / "report.html").read_text()


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_number_of_every_result_is_shown_and_equals_the_record(outputs: dict[str, str], tmp_path: Path) -> None:
    result, html = report(outputs, tmp_path / "report")
    assert result["steps"] == 5
    assert result["mismatches"] == 0
    assert result["bytes"] == len(html.encode())
    tagged = [a for _, a in Elements(html).found if "data-metric" in a]
    assert result["numbers"] == len(tagged)
    shown = {(a["data-step"], a["data-metric"]): a["data-value"] for a in tagged}
    for label, (_, _, numbers) in CHAIN.items():
        for place, value in flat_numbers(numbers, "result").items():
            assert shown[label, place] == json.dumps(value)
    assert json.loads(shown["*", "manifest.bytes"] or "") == sum(10 ** (i + 3) + 17 for i in range(5))


def test_a_report_has_nothing_of_a_machine_or_a_person_and_is_the_same_on_every_machine(
    outputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = {
        "prompt": "percy of worker-3",
        "text": "mail ada@analytical-engine.org from /home/ada/x, hf_QwErTyUiOp",
    }
    write(Path(outputs["model"], "generated.jsonl"), json.dumps(generated) + "\n")
    result, html = report(outputs, tmp_path / "report", expectations={"raw": [expect("pages", at_least=500)]})
    assert (result["mismatches"], result["bytes"]) == (0, len(html.encode()))
    private = [str(tmp_path), "percy", "worker-3", "analytical-engine", "/home/", "hf_QwErTy", "5b4f0a77"]
    assert [text for text in private if text in html] == []
    pictures = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", html)]
    assert [b"percy" in picture for picture in pictures] == [False]
    monkeypatch.setenv("USER", "pages")
    monkeypatch.setenv("SOME_API_KEY", "documents")
    assert report(outputs, tmp_path / "again", expectations={"raw": [expect("pages", at_least=500)]})[1] == html


def test_the_page_of_an_experiment_has_the_same_look(outputs: dict[str, str], tmp_path: Path) -> None:
    _, html = report(outputs, tmp_path / "report")
    [style] = re.findall(r"<style>.*?</style>", html, re.DOTALL)
    write(tmp_path / "prefix/experiments/x-123456.json", '{"steps": []}')
    assert style in page_of(steps_of_record(str(tmp_path / "prefix/experiments/x-123456.json")))


def test_a_number_that_is_not_the_records_is_a_mismatch(outputs: dict[str, str], tmp_path: Path) -> None:
    _, html = report(outputs, tmp_path / "report")
    records = read_records(outputs)
    for good, bad in (
        (">4.059<", ">4.058<"),
        ('data-value="4.0587"', 'data-value="4.0588"'),
        (">24.3 MB<", ">24.3 GB<"),
    ):
        assert good in html
        _, wrong = check_numbers(html.replace(good, bad, 1), records)
        assert len(wrong) == 1, wrong
    path = Path(outputs["model"], ".executor_info")
    path.write_text(path.read_text().replace("4.0587", "4.5"))
    _, wrong = check_numbers(html, read_records(outputs))
    assert wrong
    assert all("result.loss_end shows '4.059'" in sentence and "the record has 4.5" in sentence for sentence in wrong)


def test_a_number_of_a_step_that_has_none_is_a_mismatch(outputs: dict[str, str]) -> None:
    page = '<data data-step="nobody" data-metric="result.x" data-value="1">1</data>'
    assert check_numbers(page, read_records(outputs))[1] == [
        "nobody result.x shows '1' (exactly 1); the record has None"
    ]


def test_what_the_steps_have_cost_is_summed_and_what_the_sums_lack_is_said(
    outputs: dict[str, str], tmp_path: Path
) -> None:
    for label in list(outputs)[1:]:
        file = Path(outputs[label], ".executor_info")
        spent = {"wall_s": 60.0, "cpu_s": 90.0, "device_s": 0.0, "unknown_attempts": int(label == "model")}
        file.write_text(json.dumps(json.loads(file.read_text()) | {"spent": spent}))
    result, html = report(outputs, tmp_path / "report")
    text = " ".join(Elements(html).text.split())
    assert "all4.00 min6.00 min0.00 s" in text
    assert f"1 of {len(outputs)} steps has no record of CPU time." in text
    assert "1 attempt was killed, and recorded no cost." in text
    assert result["mismatches"] == 0
    _, html = report({"model": outputs["model"]}, tmp_path / "one")
    assert "1 input is not on this page, and in no sum." in Elements(html).text


def test_expectations_are_checked_against_the_records(outputs: dict[str, str], tmp_path: Path) -> None:
    expectations = {
        "raw": [expect("pages", at_least=500)],
        "scores": [
            expect("scores.held_out.acc", at_least=0.5, description="above <chance>"),
            expect("nothing", at_most=1),
        ],
    }
    result, html = report(outputs, tmp_path / "report", expectations=expectations)
    assert (result["expectations"], result["expectations_failed"], result["mismatches"]) == (3, 2, 0)
    text = Elements(html).text
    assert text.count("✓ held") == 1
    assert text.count("✗ failed") == 2
    assert "1 of 3" in text
    assert "not recorded" in text
    assert "above <chance>" in text


def test_the_summary_has_each_expectation_and_what_was_found(outputs: dict[str, str], tmp_path: Path) -> None:
    expectations = {"raw": [expect("pages", at_least=500)], "scores": [expect("nothing", at_most=1)]}
    result, _ = report(outputs, tmp_path / "report", expectations=expectations)
    assert result["summary"] == [
        {"step": "raw", "expected": expectations["raw"][0].describe(), "found": 902, "held": True},
        {"step": "scores", "expected": expectations["scores"][0].describe(), "found": None, "held": False},
    ]


def test_generated_texts_are_shown_as_they_are(outputs: dict[str, str], tmp_path: Path) -> None:
    rows = [{"prompt": f"def f{i}(", "text": "<b>x</b>):\n    return"} for i in range(12)]
    write(Path(outputs["model"], "generated.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    result, html = report(outputs, tmp_path / "report")
    assert result["mismatches"] == 0
    assert "def f0(<b>x</b>):\n    return" in Elements(html).text
    assert "<b>x</b>" not in html
    assert ("def f9(" in html, "def f10(" in html) == (True, False)


def test_the_page_needs_no_other_file_and_no_network(outputs: dict[str, str], tmp_path: Path) -> None:
    _, html = report(outputs, tmp_path / "report")
    elements = Elements(html).found
    assert not {"script", "link", "iframe"} & {tag for tag, _ in elements}
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert "url(" not in html
    sources = [a["src"] for _, a in elements if "src" in a]
    assert len(sources) == 1
    assert str(sources[0]).startswith("data:image/png;base64,")


def test_the_page_begins_with_what_came_out_and_the_steps_come_after_it(
    outputs: dict[str, str], tmp_path: Path
) -> None:
    _, html = report(outputs, tmp_path / "report")
    shown = [(a["data-step"], a["data-metric"]) for _, a in Elements(html).found if "data-metric" in a]
    assert shown[:4] == [
        ("model", "result.loss_start"),
        ("model", "result.loss_end"),
        ("scores", "result.acc"),
        ("scores", "result.chance"),
    ]
    ids = [a["id"] for tag, a in Elements(html).found if tag == "h2" and "id" in a]
    assert ids[:3] == ["loss-model", "scores-scores", "dag"]


def test_every_link_leads_somewhere_and_every_step_is_a_node_with_its_version(
    outputs: dict[str, str], tmp_path: Path
) -> None:
    _, html = report(outputs, tmp_path / "report")
    elements = Elements(html).found
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {f"#{name}" for name in ids} >= {a["href"] for _, a in elements if "href" in a}
    nodes = set(re.findall(r"<title>([^<]+)</title><rect", html))
    assert nodes == {f"{name}-{index:06x}" for index, (name, *_) in enumerate(CHAIN.values())}


def test_steps_come_after_their_inputs(outputs: dict[str, str]) -> None:
    assert list(read_records(outputs)) == ["raw", "documents", "model", "held out", "scores"]


def test_steps_know_their_inputs_after_their_prefix_was_moved(outputs: dict[str, str], tmp_path: Path) -> None:
    moved = {}
    for label, path in outputs.items():
        moved[label] = str(tmp_path / "moved" / Path(path).relative_to(tmp_path))
        Path(moved[label]).parent.mkdir(parents=True, exist_ok=True)
        Path(path).rename(moved[label])
    records = read_records(moved)
    assert list(records) == ["raw", "documents", "model", "held out", "scores"]
    assert parents_of(records["scores"], records) == ["model", "held out"]


def test_texts_are_shown_as_they_are_and_not_as_html(outputs: dict[str, str], tmp_path: Path) -> None:
    samples = Path(outputs["scores"], "samples.jsonl")
    samples.write_text(samples.read_text().replace("call open", "<script>alert(1)</script>"))
    _, html = report(outputs, tmp_path / "report", title="R & <D>")
    assert "<script" not in html
    assert "<script>alert(1)</script>" in Elements(html).text
    assert "R & <D>" in Elements(html).text


def test_the_loss_curve_has_the_losses_of_training_and_validation(outputs: dict[str, str], tmp_path: Path) -> None:
    _, html = report(outputs, tmp_path / "report")
    curves = {str(a["class"]): str(a["points"]).split() for tag, a in Elements(html).found if tag == "polyline"}
    assert set(curves) == {"curve raw", "curve train", "curve eval"}
    assert len(curves["curve raw"]) == 298
    assert len(curves["curve eval"]) == 2
    heights = [float(point.split(",")[1]) for point in curves["curve raw"]]
    assert heights == sorted(heights)  # the loss falls, and y grows downwards
    assert "untrained: eval/loss 8.25" in Elements(html).text


def test_the_same_records_are_the_same_bytes(outputs: dict[str, str], tmp_path: Path) -> None:
    first, second = report(outputs, tmp_path / "a"), report(outputs, tmp_path / "b")
    assert first == second


def test_the_config_crosses_to_the_worker_and_the_report_is_written_in_a_bucket(outputs: dict[str, str]) -> None:
    import fsspec

    config = ReportConfig(
        inputs=outputs, output_path="memory://report", expectations={"raw": [expect("pages", at_least=1)]}
    )
    result = write_report(decode(json.loads(json.dumps(encode(unwrap_versioned_value(config))))))
    assert result["expectations"] == 1
    assert fsspec.filesystem("memory").size("/report/report.html") == result["bytes"]


def test_missing_fields_of_a_marin_record_are_shown_as_not_recorded(tmp_path: Path) -> None:
    write(tmp_path / "raw/old-123456/.executor_info", json.dumps({"name": "raw/old", "dependencies": []}))
    result, html = report({"old": str(tmp_path / "raw/old-123456")}, tmp_path / "report")
    assert (result["numbers"], result["mismatches"]) == (0, 0)
    assert "not recorded" in Elements(html).text


def test_missing_inputs_are_an_error(outputs: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"The step 'x' has no record '.executor_info' in '.*/nothing'. Run the step"):
        report({"x": str(tmp_path / "nothing")}, tmp_path)
    with pytest.raises(ReportError, match=r"Expectations name 'x', expected one of the inputs 'documents'"):
        report(outputs, tmp_path, expectations={"x": [expect("a", at_least=1)]})
    with pytest.raises(ReportError, match="The report has no inputs"):
        report({}, tmp_path)


@given(
    value=st.integers(-(10**15), 10**15) | st.floats(-1e15, 1e15, allow_nan=False, allow_subnormal=False),
    metric=st.sampled_from(["result.count", "manifest.bytes", "duration_s"]),
)
def test_a_shown_number_equals_the_value_to_the_last_digit(value: float, metric: str) -> None:
    shown = format_number(value, metric)
    assert is_shown_by(shown, value)
    number, tolerance = parse_number(shown)
    assert not is_shown_by(shown, value + 3 * tolerance + 1)
    assert number == pytest.approx(value, abs=tolerance, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (3103, "result.documents", "3,103"),
        (0.745, "result.acc", "0.7450"),
        (4.0587, "result.loss", "4.059"),
        (33123.4, "result.tokens_per_second", "33,123"),
        (3.2e-7, "result.rare", "3.200e-07"),
        (512, "manifest.bytes", "512 B"),
        (5_512_399, "manifest.bytes", "5.51 MB"),
        (37.25, "duration_s", "37.2 s"),
        (7230, "duration_s", "2.01 h"),
    ],
)
def test_numbers_are_formatted_for_readers(value: float, metric: str, text: str) -> None:
    assert format_number(value, metric) == text


def node(key: str, *parents: str) -> DagNode:
    return DagNode(key=key, name=key, title=key * 9, subtitle="abc123", link=f"#{key}", state="plain", parents=parents)


NODES = [
    node("a"),
    node("b", "a"),
    node("c", "a", "elsewhere"),
    node("d", "b", "c"),
    node("t"),
    node("e", "d", "a", "t"),
]


def test_a_node_is_below_its_inputs_and_a_source_just_above_its_reader() -> None:
    depth = depths({n.key: [p for p in n.parents if p != "elsewhere"] for n in NODES})
    assert depth == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3, "t": 2}


def test_nodes_do_not_overlap_and_edges_go_from_layer_to_layer() -> None:
    layout = lay_out(NODES)
    for layer in layout.layers:
        for left, right in itertools.pairwise(layer):
            gap = layout.x[right] - layout.x[left] - (layout.widths[left] + layout.widths[right]) / 2
            assert gap >= 10
    layer_of = {key: depth for depth, layer in enumerate(layout.layers) for key in layer}
    assert all(layer_of[b] == layer_of[a] + 1 for a, b in layout.edges)
    assert len(layout.edges) == 7 + 2  # a -> e passes two layers


def test_the_whole_dag_is_inside_its_view_box() -> None:
    svg = draw_dag(NODES)
    [(width, height)] = [(float(w), float(h)) for w, h in re.findall(r'viewBox="0 0 (\S+) (\S+)"', svg)]
    boxes = re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)"', svg)
    assert len(boxes) == len(NODES)
    for x, y, w in boxes:
        assert float(x) >= 0
        assert float(x) + float(w) <= width + 1
        assert float(y) + NODE_HEIGHT <= height
