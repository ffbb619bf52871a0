"""The recipes at their small scale, from nothing: what each is meant to show is there to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import read_documents

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all recipes, which share their documents."""
    return tmp_path_factory.mktemp("recipes")


def run(name: str, prefix: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"marin_assets.experiments.recipes.{name}", "--prefix", str(prefix)],
        cwd=prefix,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def result(prefix: Path, pattern: str) -> Any:
    [record] = prefix.glob(f"{pattern}-??????/.executor_info")
    return json.loads(record.read_text())["result"]


def texts(prefix: Path, model: str) -> list[str]:
    [file] = prefix.glob(f"generated/chat/{model}-answers-*/generated.jsonl")
    return [json.loads(line)["text"] for line in file.read_text().splitlines()]


def test_a_pretrained_model_learns_to_answer_and_to_stop(prefix: Path) -> None:
    assert "18 computed, 0 reused, 0 failed" in run("chat", prefix)
    assert result(prefix, "checkpoints/chat/base")["loss_ratio"] < 0.6
    assert result(prefix, "checkpoints/chat/answering")["loss_ratio"] < 0.9
    preferring = result(prefix, "checkpoints/chat/preferring")
    assert preferring["accuracy_end"] > 0.8
    assert preferring["loss_end"] < preferring["loss_start"]
    assert all(len(text.split()) > 1 and text.rstrip().endswith(".") for text in texts(prefix, "answering"))
    assert all("__" in text or "\n" in text for text in texts(prefix, "base")), "it goes on as a page does"
    [page] = prefix.glob("report/chat-*/report.html")
    html = page.read_text()
    assert all(text.strip()[:20] in html for text in texts(prefix, "preferring"))
    assert result(prefix, "report/chat")["expectations_failed"] == 0
    assert "0 computed, 18 reused, 0 failed" in run("chat", prefix)


def test_a_crawl_becomes_tokens_without_menus_copies_and_pages_that_are_gone(prefix: Path) -> None:
    assert "10 computed, 0 reused, 0 failed" in run("web_like", prefix)
    crawl, pages = result(prefix, "raw/web_like/crawl"), result(prefix, "raw/web_like")
    assert pages["pages"] == crawl["pages"] + crawl["mirrored"]
    assert pages["rejected_status"] == crawl["gone"] > 20
    kept = result(prefix, "consolidated/web_like")
    assert kept["rejected_near_duplicates/near_duplicate"] >= crawl["mirrored"] // 2
    assert kept["kept"] > 500
    texts = [d.text for shard in prefix.glob("consolidated/web_like-*/*.jsonl.zst") for d in read_documents(str(shard))]
    assert len(texts) == kept["kept"]
    assert not [text for text in texts if "This site uses cookies" in text]
    assert result(prefix, "tokenized/web_like")["tokens"] > 100_000


def test_a_dump_becomes_tokens_of_the_newest_articles_without_notes_and_references(prefix: Path) -> None:
    assert "6 computed, 0 reused, 0 failed" in run("wikipedia_like", prefix)
    dump, pages = result(prefix, "raw/wikipedia_like/dump"), result(prefix, "raw/wikipedia_like")
    assert pages["pages"] == dump["articles"] > 50
    assert pages["rejected_superseded"] == dump["older"] > 5
    assert pages["rejected_redirect"] == dump["redirects"] > 5
    counts = result(prefix, "documents/wikipedia_like")
    assert counts["infoboxes"] == counts["cut_section"] == counts["cut_hatnote"] == counts["pages"]
    [*shards] = prefix.glob("documents/wikipedia_like-*/*.jsonl.zst")
    texts = [document.text for shard in shards for document in read_documents(str(shard))]
    assert len(texts) == counts["documents"]
    assert sum("| Topic | " in text for text in texts) == counts["pages_kept"] > 50
    for cut in ("[edit]", "Pythonidae", "v t e Python topics", "An older version of the article"):
        assert not [text for text in texts if cut in text]
    assert result(prefix, "tokenized/wikipedia_like")["tokens"] > 100_000


def test_a_mixture_is_best_at_what_it_has_most_of(prefix: Path) -> None:
    run("mixture_ablation", prefix)
    compared = result(prefix, "comparisons/mixture-ablation")["values"]
    for members in ("prose", "listings"):
        losses = {label: values[f"eval/{members}/loss"] for label, values in compared.items()}
        assert min(losses, key=lambda label: losses[label]) in (members, f"mostly-{members}")
        assert max(losses, key=lambda label: losses[label]) not in (members, f"mostly-{members}")


def test_a_sweep_keeps_the_model_with_the_least_loss(prefix: Path) -> None:
    run("width_sweep", prefix)
    swept = result(prefix, "comparisons/width-sweep")
    assert len(swept["values"]) == 6
    assert swept["value"] == min(values["loss_end"] for values in swept["values"].values())
    [best] = prefix.glob(f"checkpoints/width-sweep/{swept['best']}-??????/hf/model.safetensors")
    [kept] = prefix.glob("comparisons/width-sweep-*/hf/model.safetensors")
    assert kept.read_bytes() == best.read_bytes()
