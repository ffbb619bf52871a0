"""The recipes of training at their small scale, from nothing, and the results that each is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recipe_runs import result_of, run_recipe

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of all recipes."""
    return tmp_path_factory.mktemp("recipes")


def texts(prefix: Path, model: str) -> list[str]:
    [file] = prefix.glob(f"generated/chat/{model}-answers-*/generated.jsonl")
    return [json.loads(line)["text"] for line in file.read_text().splitlines()]


def test_a_pretrained_model_learns_to_answer_and_to_stop(prefix: Path) -> None:
    assert "18 computed, 0 reused, 0 failed" in run_recipe("chat", prefix)
    assert result_of(prefix, "checkpoints/chat/base")["loss_ratio"] < 0.6
    assert result_of(prefix, "checkpoints/chat/answering")["loss_ratio"] < 0.9
    preferring = result_of(prefix, "checkpoints/chat/preferring")
    assert preferring["accuracy_end"] > 0.8
    assert preferring["loss_end"] < preferring["loss_start"]
    assert all(len(text.split()) > 1 and text.rstrip().endswith(".") for text in texts(prefix, "answering"))
    assert all("__" in text or "\n" in text for text in texts(prefix, "base")), "it goes on as a page does"
    [page] = prefix.glob("report/chat-*/report.html")
    html = page.read_text()
    assert all(text.strip()[:20] in html for text in texts(prefix, "preferring"))
    assert result_of(prefix, "report/chat")["expectations_failed"] == 0
    assert "0 computed, 18 reused, 0 failed" in run_recipe("chat", prefix)


def test_a_mixture_is_best_at_what_it_has_most_of(prefix: Path) -> None:
    run_recipe("mixture_ablation", prefix)
    compared = result_of(prefix, "comparisons/mixture-ablation")["values"]
    for members in ("prose", "listings"):
        losses = {label: values[f"eval/{members}/loss"] for label, values in compared.items()}
        assert min(losses, key=lambda label: losses[label]) in (members, f"mostly-{members}")
        assert max(losses, key=lambda label: losses[label]) not in (members, f"mostly-{members}")


def test_a_sweep_keeps_the_model_with_the_least_loss(prefix: Path) -> None:
    run_recipe("width_sweep", prefix)
    swept = result_of(prefix, "comparisons/width-sweep")
    assert len(swept["values"]) == 6
    assert swept["value"] == min(values["loss_end"] for values in swept["values"].values())
    [best] = prefix.glob(f"checkpoints/width-sweep/{swept['best']}-??????/hf/model.safetensors")
    [kept] = prefix.glob("comparisons/width-sweep-*/hf/model.safetensors")
    assert kept.read_bytes() == best.read_bytes()


def test_a_model_that_is_sometimes_right_is_right_more_often_after_a_training_on_rewards(prefix: Path) -> None:
    assert "13 computed, 0 reused, 0 failed" in run_recipe("rl_sums", prefix, "marin_assets.experiments")
    before, after = (result_of(prefix, f"evaluation/rl_sums/{when}")["scores"]["sums"] for when in ("before", "after"))
    assert after["pass@1"] > before["pass@1"] + 0.1
    compared = result_of(prefix, "comparisons/rl_sums")
    assert (compared["better"], compared["worse"]) == (1, 0)
    assert "0 computed, 13 reused, 0 failed" in run_recipe("rl_sums", prefix, "marin_assets.experiments")


def test_a_larger_run_is_forecast_before_it_is_trained(prefix: Path) -> None:
    assert "3 computed, 18 reused, 0 failed" in run_recipe("scaling_law", prefix)
    table = result_of(prefix, "runs/scaling-law")
    assert (table["runs"], len(table["budgets"])) == (12, 3)
    checked = result_of(prefix, "forecasts/scaling-law")
    [row] = checked["forecasts"]
    assert (row["made"], checked["late"]) == ("before", 0)
    [page] = prefix.glob("forecasts/scaling-law-*/forecast.html")
    outside = "outside of the interval" in page.read_text()
    assert outside == (not row["run_low"] <= row["measured"] <= row["run_high"]), "the page states it either way"
    assert abs(row["error"]) < 0.25
    assert "0 computed, 21 reused, 0 failed" in run_recipe("scaling_law", prefix)
