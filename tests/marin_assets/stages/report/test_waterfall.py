"""The waterfall of real consolidations, one after the other."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.documents.attributes import KEPT, Decision, write_decisions
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.stages.report.records import StepRecord, read_records
from marin_assets.stages.report.report import ReportConfig, write_report
from marin_assets.stages.report.waterfall import chains, rejected_documents, rows_of
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.types.record import Record

DOCUMENTS = [Document(id=f"d{i}", text=f"{i} <b>words</b> and more " * (i + 1)) for i in range(10)]


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, str]:
    """Documents that are filtered by their number and consolidated; the kept ones filtered and consolidated again."""
    write_documents(f"{tmp_path}/documents/a.jsonl.zst", DOCUMENTS)
    few = Decision(keep=False, reason="few", value=1.5)
    decide(tmp_path / "length", {d.id: few for d in DOCUMENTS[:3]} | {"d4": Decision(keep=True, cut=((0, 5),))})
    first = made(tmp_path, "consolidated", "documents", length="length")
    decide(tmp_path / "contamination", {"d9": Decision(keep=False, reason="contaminated")}, DOCUMENTS[3:])
    second = made(tmp_path, "clean", "consolidated", contamination="contamination")
    return {"consolidated": first, "clean": second}


def decide(path: Path, decisions: dict[str, Decision], documents: list[Document] = DOCUMENTS) -> None:
    from collections import Counter

    rows = ((document.id, decisions.get(document.id, KEPT)) for document in documents)
    write_decisions(f"{path}/a.jsonl.zst", rows, Counter())


def made(root: Path, name: str, documents: str, **attributes: str) -> str:
    """An output of consolidate with the record that a worker writes."""
    config = ConsolidateConfig(
        documents_path=f"{root}/{documents}",
        attributes=[Applied(name=key, path=f"{root}/{value}") for key, value in attributes.items()],
        output_path=f"{root}/{name}",
    )
    plain = unwrap_versioned_value(config)
    record: dict[str, Any] = {
        "name": name,
        "config": {"documents_path": plain.documents_path},
        "dependencies": [plain.documents_path],
        "duration_s": 1.0,
        "manifest": {"files": 3, "bytes": 99},
        "attempt": 1,
        "finished_at": "2025-11-21T06:20:16.423456+00:00",
        "result": consolidate(plain),
    }
    (root / name / ".executor_info").write_text(json.dumps(record))
    return f"{root}/{name}"


@pytest.fixture
def records(outputs: dict[str, str]) -> dict[str, StepRecord]:
    return read_records(outputs)


def test_consolidations_that_read_each_other_are_one_waterfall(records: dict[str, StepRecord]) -> None:
    assert chains(records) == [["consolidated", "clean"]]
    rows = list(rows_of(records, ["consolidated", "clean"]))
    assert [(row.title, row.kind) for row in rows] == [
        ("documents in", "total"),
        ("length: few", "reject"),
        ("length: cut", "cut"),
        ("contamination: contaminated", "reject"),
        ("kept", "kept"),
    ]
    assert [row.span["documents"] for row in rows] == [(0, 10), (7, 10), (7, 7), (6, 7), (0, 6)]


def test_the_amounts_left_end_at_the_kept_amounts(records: dict[str, StepRecord]) -> None:
    rows = list(rows_of(records, ["consolidated", "clean"]))
    for unit in ("documents", "bytes"):
        assert rows[0].span[unit][1] == rows[1].span[unit][1]
        left = [row.span[unit] for row in rows[1:-1]]
        assert all(after == before for (after, _), (_, before) in itertools.pairwise(left))
        assert rows[-2].span[unit][0] == rows[-1].span[unit][1]


def test_the_page_shows_every_number_of_the_waterfall_as_in_the_records(
    outputs: dict[str, str], tmp_path: Path
) -> None:
    config = ReportConfig(inputs=outputs, output_path=str(tmp_path / "report"))
    result = write_report(unwrap_versioned_value(config))
    assert result["mismatches"] == 0
    html = (tmp_path / "report/report.html").read_text()
    [chart] = re.findall(r'<svg class="chart waterfall".*?</svg>', html, re.DOTALL)
    shown = re.findall(r'data-metric="([^"]+)" data-value="([^"]+)"', chart)
    assert ("result.by_reason.length/few.documents", "3") in shown
    assert ("result.by_reason.contamination/contaminated.documents", "1") in shown
    assert ("result.kept", "6") in shown
    assert "not recorded" not in chart


def test_rejected_documents_can_be_read_and_their_markup_is_text(outputs: dict[str, str], tmp_path: Path) -> None:
    config = ReportConfig(inputs=outputs, output_path=str(tmp_path / "report"), sample_rejected=2)
    write_report(unwrap_versioned_value(config))
    html = (tmp_path / "report/report.html").read_text()
    assert html.count('<pre class="sample">') == 3  # two of the three with few words, one contaminated
    assert "9 &lt;b&gt;words&lt;/b&gt; and more" in html
    assert "9 <b>words</b>" not in html


def test_a_step_that_rejects_nothing_has_no_samples(records: dict[str, StepRecord], tmp_path: Path) -> None:
    plain = StepRecord(label="other", path=str(tmp_path), record=Record())
    assert rejected_documents(plain, 3) == []
    assert chains({"other": plain}) == []
    assert [group["reason"] for group in rejected_documents(records["consolidated"], 1)] == ["few"]
