"""The quickstart, in its tiny scale: the whole way on real text, once, and then never again."""

import json
import math
import re
from pathlib import Path

import dagster as dg
import pytest
from running import reused

from marin_assets.catalog.asset_key import key_of
from marin_assets.experiments.quickstart import TINY
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.step.graph import build_graph
from marin_resources.dagster_fixes.output_pages import IN_PLACE
from marin_resources.storage.files import list_files

pytestmark = pytest.mark.timeout(1200)
"""The whole road takes two minutes, and many beside other work."""


def test_every_stage_is_made_and_every_check_holds(tiny_quickstart) -> None:
    assert tiny_quickstart.result.success
    assert set(reused(tiny_quickstart.result)) == {
        "/".join(key_of(node)) for node in build_graph(tiny_quickstart.steps)
    }
    failed = [check for check in tiny_quickstart.result.get_asset_check_evaluations() if not check.passed]
    assert failed == []


def test_run_again_it_computes_nothing(tiny_quickstart) -> None:
    result = tiny_quickstart.again()
    assert result.success
    assert all(reused(result).values())


def test_every_output_lies_where_its_asset_says(tiny_quickstart) -> None:
    for node in build_graph(tiny_quickstart.steps):
        path = tiny_quickstart.prefix / node.version.path
        assert (path / ".executor_status").read_text() == "SUCCESS"
        assert json.loads((path / ".executor_info").read_text())["version"] == node.version.as_dict()


def test_the_report_is_one_page_that_needs_nothing_else(tiny_quickstart) -> None:
    page = (tiny_quickstart.output("report/quickstart-tiny") / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "acc_mutual_info" in page


def test_readers_of_data_see_no_control_files(tiny_quickstart) -> None:
    for step in tiny_quickstart.steps:
        path = tiny_quickstart.output(step.name)
        assert not any(Path(name).name.startswith(".") for name in list_files(str(path)))


def test_an_asset_shows_path_counts_bytes_duration_plot_and_log(tiny_quickstart) -> None:
    event = tiny_quickstart.instance.get_latest_materialization_event(dg.AssetKey(["quickstart-tiny", "checkpoints"]))
    metadata = event.asset_materialization.metadata
    assert metadata["path"].value == str(tiny_quickstart.output("checkpoints/quickstart-tiny"))
    assert metadata["bytes"].value > 100_000
    assert metadata["duration_s"].value > 0
    assert metadata["parameters"].value > 0
    address = f"/outputs/{tiny_quickstart.output('checkpoints/quickstart-tiny').relative_to(tiny_quickstart.prefix)}"
    plot = f"{address}/plots/loss.png"
    assert metadata["plot loss.png"].value == f"[![loss.png]({plot}?{IN_PLACE})]({plot})"
    assert Path(metadata["log"].value).read_text()


def test_the_model_has_learnt_and_is_exported_with_its_tokenizer(tiny_quickstart) -> None:
    output = tiny_quickstart.output("checkpoints/quickstart-tiny")
    result = json.loads((output / ".executor_info").read_text())["result"]
    rows = read_metrics(str(output / "metrics.jsonl"))
    assert abs(result["loss_start"] - math.log(TINY.vocab_size)) < 0.2
    assert result["loss_end"] == rows[-1]["eval/loss"] < result["loss_start"] - 0.05
    assert [row["step"] for row in rows] == [-1, *range(2, TINY.train_steps)]
    exported = output / result["model_path"]
    config = json.loads((exported / "config.json").read_text())
    assert (config["model_type"], config["vocab_size"]) == ("llama", TINY.vocab_size)
    trained_on = tiny_quickstart.output("tokenizers/quickstart-tiny") / "tokenizer.json"
    assert json.loads((exported / "tokenizer.json").read_text()) == json.loads(trained_on.read_text())


def test_nothing_of_the_environment_is_in_the_corpus(tiny_quickstart) -> None:
    from marin_assets.documents import list_shards, read_documents

    shards = list_shards(str(tiny_quickstart.output("documents/quickstart-tiny")))
    text = "\n".join(document.text for shard in shards for document in read_documents(shard))
    assert str(tiny_quickstart.prefix) not in text
    assert "/site-packages/" not in text


def test_documents_are_filtered_consolidated_and_rid_of_what_the_evaluation_asks(tiny_quickstart) -> None:
    def result(name: str) -> dict:
        return json.loads((tiny_quickstart.output(name) / ".executor_info").read_text())["result"]

    documents = result("documents/quickstart-tiny")["documents"]
    for kind in ("exact_duplicates", "near_duplicates", "repetition", "quality"):
        decided = result(f"attributes/quickstart-tiny/{kind}")
        assert decided["documents"] == documents == decided["kept"] + decided["rejected"]
    selected, consolidated = result("selected/quickstart-tiny"), result("consolidated/quickstart-tiny")
    clean = result("decontaminated/quickstart-tiny")
    assert selected["documents"] == documents
    assert consolidated["documents"] == selected["kept"]
    assert clean["documents"] == consolidated["kept"]
    assert result("tokenized/quickstart-tiny")["documents"] == clean["kept"]
    assert result("attributes/quickstart-tiny/contamination")["rejected_contaminated"] == clean["rejected"]
    assert result("attributes/quickstart-tiny/contamination_left")["questions_contaminated"] == 0


def test_the_report_shows_the_waterfall_and_rejected_documents(tiny_quickstart) -> None:
    page = (tiny_quickstart.output("report/quickstart-tiny") / "report.html").read_text()
    [chart] = re.findall(r'<svg class="chart waterfall".*?</svg>', page, re.DOTALL)
    assert 'data-metric="result.by_reason.near_duplicates/near_duplicate.tokens"' in chart
    assert 'data-metric="result.tokens_kept"' in chart
    assert page.count('<pre class="sample">') > 5
