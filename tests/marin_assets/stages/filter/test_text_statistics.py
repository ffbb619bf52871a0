from pathlib import Path
from typing import Any

import pytest
from golden_texts import golden_texts

from marin_assets.documents import Document, list_shards, read_rows, write_documents
from marin_assets.stages.filter import text_statistics as stage
from marin_assets.stages.filter.text_statistics import TextStatisticsConfig, text_statistics
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json


def measure(folder: Path, texts: list[str], shards: int) -> dict[str, Any]:
    for shard in range(shards):
        rows = [Document(id=f"doc-{i}", text=texts[i]) for i in range(shard, len(texts), shards)]
        write_documents(f"{folder}/documents/part-{shard:05d}-of-{shards:05d}.jsonl.zst", rows)
    config = TextStatisticsConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/out")
    return text_statistics(unwrap_versioned_value(config))


def test_every_document_has_every_statistic(tmp_path: Path) -> None:
    result = measure(tmp_path, ["One two. Three!", "", "# x\n# x\n# x"], shards=2)
    assert result["documents"] == 3
    rows = {row["id"]: row for path in list_shards(f"{tmp_path}/out") for _, row in read_rows(path)}
    assert list(rows) == ["doc-0", "doc-2", "doc-1"]
    assert rows["doc-0"]["words"] == 3
    assert rows["doc-0"]["sentences"] == 2
    assert rows["doc-1"]["characters"] == 0
    assert rows["doc-2"]["hash_ratio"] == 0.5
    assert rows["doc-2"]["dup_line_frac"] == 2 / 3
    assert result["median_words"] == 3
    quantiles = read_json(f"{tmp_path}/out/quantiles.json")
    assert quantiles["words"][0] == 0
    assert quantiles.keys() == {name.removeprefix("median_") for name in result if name != "documents"}


def test_quantiles_do_not_depend_on_the_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "SAMPLE", 50)
    texts = golden_texts()
    assert measure(tmp_path / "one", texts, shards=1) == measure(tmp_path / "many", texts, shards=7)
    assert read_json(f"{tmp_path}/one/out/quantiles.json") == read_json(f"{tmp_path}/many/out/quantiles.json")


@pytest.mark.long
def test_statistics_are_the_same_bytes_on_ray_and_in_process(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    measure(tmp_path / "here", golden_texts()[:30], shards=3)
    request.getfixturevalue("shared_ray")
    measure(tmp_path / "there", golden_texts()[:30], shards=3)
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / x / "out").iterdir() if p.is_file()} for x in ("here", "there")
    ]
    assert files[0] == files[1]
    assert len(files[0]) == 4
