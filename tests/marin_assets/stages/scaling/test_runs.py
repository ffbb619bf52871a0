"""Tables of runs in each format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import write_rows
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.runs import label_of, read_table, rows_where, runs_of

ROWS: list[dict[str, Any]] = [
    {"label": "a", "params": 1e7, "tokens": 2e8, "flops": 1.3e16, "loss": 4.0, "final": 1},
    {"label": "b", "params": 2e7, "tokens": 4e8, "flops": 5e16, "loss": 3.5, "final": 0},
]
CSV = "label,params,tokens,flops,loss,final\na,1e7,2e8,1.3e16,4.0,1\nb,2e7,4e8,5e16,3.5,0\n"


def table(folder: Path, kind: str) -> str:
    path = folder / f"runs.{kind}"
    if kind == "csv":
        path.write_text("\ufeff" + CSV)  # of a spreadsheet
    elif kind == "json":
        path.write_text(json.dumps(ROWS))
    else:
        write_rows(str(path), ROWS)
    return str(path)


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "jsonl.zst", "parquet"])
def test_a_table_of_each_format_has_the_same_runs(kind: str, tmp_path: Path) -> None:
    runs = runs_of(read_table(table(tmp_path, kind)), {})
    assert [(run.label, run.params, run.tokens, run.flops, run.values["loss"]) for run in runs] == [
        ("a", 1e7, 2e8, 1.3e16, 4.0),
        ("b", 2e7, 4e8, 5e16, 3.5),
    ]
    assert [run.label for run in runs_of(rows_where(read_table(str(tmp_path)), {"final": 1}), {})] == ["a"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_documents_have_their_runs_in_their_metadata(kind: str, tmp_path: Path) -> None:
    rows = [{"id": row["label"], "text": "", "source": "sweep", "metadata": row} for row in ROWS]
    for row in rows:
        row["metadata"] = {name: value for name, value in row["metadata"].items() if name != "label"}
        if kind == "parquet":
            row["metadata"] = json.dumps(row["metadata"])
    write_rows(str(tmp_path / f"part-00000-of-00001.{kind}"), rows)
    (tmp_path / "README.md").write_text("a selection")
    runs = runs_of(read_table(str(tmp_path)), {})
    assert [(run.label, run.params, run.values["loss"]) for run in runs] == [("a", 1e7, 4.0), ("b", 2e7, 3.5)]


def test_columns_have_other_names_and_labels_and_flops_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("N,D,bpb\n1e7,2e8,1.5\n2e7,4e8,1.4\n")
    columns = {"params": "N", "tokens": "D", "loss": "bpb"}
    rows = read_table(str(tmp_path / "t.csv"))
    runs = runs_of(rows, columns)
    assert [run.label for run in runs] == ["row 1", "row 2"] == [label_of(row, columns) for row in rows]
    assert [run.flops for run in runs] == [6 * 1e7 * 2e8, 6 * 2e7 * 4e8]
    assert runs_of(rows, columns, flops_per_parameter_token=8)[0].flops == 8 * 1e7 * 2e8


DAMAGED = {
    "no table": ("notes.txt", "hello", "has no table of runs, only 'notes.txt'. Expected a CSV"),
    "no rows": ("t.csv", "params,tokens\n", "has no rows, expected a table"),
    "an empty file": ("t.csv", "", "has no rows, expected a table"),
    "a short line": ("t.csv", "params,tokens,loss\n1,2\n", "line 2 has another number of cells than the header"),
    "a column twice": ("t.csv", "params,loss,loss\n1,2,3\n", "has the column 'loss' twice"),
    "a quote": ("t.csv", 'params,loss\n"1,2\n', "is not CSV"),
    "half of JSON": ("t.json", '[{"params": 1', "is not JSON"),
    "JSON of a dict": ("t.json", '{"params": 1}', "is no list of objects"),
    "half of a line": ("t.jsonl", '{"params": 1}\n{"para', "line 2 is no row"),
    "NaN": (
        "t.jsonl",
        '{"label": "x", "params": 1, "tokens": 2, "loss": true}',
        "has loss = True, expected a positive",
    ),
    "infinite": ("t.csv", "label,params,tokens,loss\nx,1,2,inf\n", "has loss = 'inf', expected a positive number"),
}


@pytest.mark.parametrize(("file", "text", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_table_is_a_sentence(file: str, text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(ScalingError, match=sentence):
        runs_of(read_table(str(tmp_path)), {})


def test_text_in_another_encoding_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("label,loss\né,1\n".encode("latin-1"))
    with pytest.raises(ScalingError, match="is no text in UTF-8"):
        read_table(str(tmp_path / "t.csv"))


def test_a_path_without_anything_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="Nothing exists at"):
        read_table(str(tmp_path / "nowhere"))
