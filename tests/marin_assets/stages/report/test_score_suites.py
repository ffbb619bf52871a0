"""Scores of suites of tasks: centered accuracies, the better of two forms, and what is left out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_eval, default_suite_scores, default_train
from marin_assets.stages.evaluate import suites as evaluated
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.stages.report.models_by_tasks.suites.core import CORE, CORE_PLUS_MMLU
from marin_assets.stages.report.models_by_tasks.suites.olmes import OLMES
from marin_assets.stages.report.models_by_tasks.suites.score_suites import ScoreSuitesConfig, score_suites
from marin_assets.stages.report.models_by_tasks.suites.suite import Form, Part, Suite
from marin_assets.stages.report.records import ReportError
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import decode, encode

ERROR = 0.01


def write_evaluation(folder: Path, accuracies: dict[tuple[str, int], float], metric: str = "") -> str:
    """An output of an evaluation, with the labels of its tasks made of their names and shots."""
    folder.mkdir(parents=True)
    labels = {f"{task}-at-{shots}": (task, shots) for task, shots in accuracies}
    metrics = [metric] if metric else ["acc", "acc_norm", "acc_mutual_info"]
    scores = {
        label: {
            "instances": 100,
            **{f"{name}{end}": value for name in metrics for end, value in (("", accuracies[key]), ("_stderr", ERROR))},
        }
        for label, key in labels.items()
    }
    results = {
        "results": {label: {"name": task} for label, (task, _) in labels.items()},
        "n-shot": {label: shots for label, (_, shots) in labels.items()},
    }
    (folder / ".executor_info").write_text(json.dumps({"name": folder.name, "result": {"scores": scores}}))
    (folder / "results.json").write_text(json.dumps(results))
    return str(folder)


def accuracies_of(suite: Suite, accuracy: float) -> dict[tuple[str, int], float]:
    return {(form.task, form.shots): accuracy for part in suite.parts for form in part.forms}


def scored(models: dict[str, str], output: Path, **fields: Any) -> dict[str, Any]:
    return score_suites(unwrap_versioned_value(ScoreSuitesConfig(models=models, output_path=str(output), **fields)))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "suites.jsonl").read_text().splitlines()]


def test_the_core_mean_is_that_of_centered_accuracies_by_the_tasks_own_names_and_shots(tmp_path: Path) -> None:
    model = write_evaluation(tmp_path / "model", accuracies_of(CORE, 0.7))
    result = scored({"model": model}, tmp_path / "out")
    baselines = [part.baseline for part in CORE.parts if part.baseline is not None]
    assert len(baselines) == 13
    expected = sum((0.7 - baseline) / (1 - baseline) for baseline in baselines) / 13
    assert result["suites"] == {"CORE_TASKS": {"model": pytest.approx(expected)}}
    assert (result["missing"], result["without_suite"]) == ({}, [])
    rows = {row["part"]: row for row in rows_of(tmp_path / "out")}
    assert rows["boolq"]["value"] == pytest.approx(0.08 / 0.38)
    assert rows["boolq"]["error"] == pytest.approx(ERROR / 0.38)
    assert rows["hellaswag_10shot"]["task"] == "hellaswag-at-10"
    page = (tmp_path / "out/suites.html").read_text()
    assert "centered mean of 13 tasks" in page
    assert f"<b>{expected:.3f}</b>" in page


def test_the_step_has_the_suites_in_its_version_and_in_the_config_that_reaches_the_worker(tmp_path: Path) -> None:
    model = default_train("suited", {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path=""))
    evaluation = default_eval(model, evaluated.CORE_TASKS)
    steps = [default_suite_scores("x", {"a": evaluation}), default_suite_scores("x", {"a": evaluation}, suites=[CORE])]
    versions = [build_graph([step])[step].version for step in steps]
    assert versions[0] != versions[1]
    path = write_evaluation(tmp_path / "model", accuracies_of(CORE, 0.7))
    config = unwrap_versioned_value(ScoreSuitesConfig(models={"model": path}, output_path=str(tmp_path / "out")))
    assert decode(encode(config)) == config
    assert score_suites(decode(encode(config)))["suites"].keys() == {"CORE_TASKS"}


def test_the_error_of_the_mean_adds_those_of_one_task_at_two_numbers_of_shots(tmp_path: Path) -> None:
    parts = tuple(part for part in CORE.parts if part.name in ("copa", "hellaswag_0shot", "hellaswag_10shot"))
    suite = Suite(name="three", parts=parts, centered=True)
    model = write_evaluation(tmp_path / "model", accuracies_of(suite, 0.6))
    result = scored({"model": model}, tmp_path / "out", suites=(suite,))
    assert result["errors"]["three"]["model"] == pytest.approx(math.hypot(ERROR / 0.5, 2 * ERROR / 0.75) / 3)


def test_without_a_task_or_at_other_shots_there_is_no_mean_and_the_page_names_what_lacks(tmp_path: Path) -> None:
    accuracies = accuracies_of(CORE, 0.7)
    del accuracies["boolq", 10]
    accuracies["arc_easy", 25] = accuracies.pop(("arc_easy", 10))
    models = {
        "most": write_evaluation(tmp_path / "most", {**accuracies, ("truthfulqa_mc2", 6): 0.5}),
        "all": write_evaluation(tmp_path / "all", accuracies_of(CORE, 0.6)),
    }
    result = scored(models, tmp_path / "out")
    assert result["suites"]["CORE_TASKS"].keys() == {"all"}
    assert result["missing"] == {"CORE_TASKS": {"most": ["arc_easy (10 shots)", "boolq (10 shots)"]}}
    assert result["without_suite"] == ["arc_easy-at-25", "truthfulqa_mc2-at-6"]
    page = (tmp_path / "out/suites.html").read_text()
    assert "CORE_TASKS has no mean of most: not evaluated: arc_easy (10 shots), boolq (10 shots)." in page
    assert "Left out, as no suite has them and so no baseline: arc_easy-at-25, truthfulqa_mc2-at-6." in page


def test_of_two_forms_the_better_is_the_score_by_the_metric_of_its_task(tmp_path: Path) -> None:
    accuracies = accuracies_of(OLMES, 0.3)
    accuracies["olmes_boolq_choice", 5] = 0.8
    model = write_evaluation(tmp_path / "model", accuracies)
    result = scored({"model": model}, tmp_path / "out")
    assert result["suites"] == {"OLMES_TASKS": {"model": pytest.approx((9 * 0.3 + 0.8) / 10)}}
    rows = [row for row in rows_of(tmp_path / "out") if row["part"] == "boolq"]
    assert [(row["task"], row["best"], row["value"]) for row in rows] == [
        ("olmes_boolq_cloze-at-5", False, None),
        ("olmes_boolq_choice-at-5", True, 0.8),
    ]
    assert "olmes_boolq_choice</small>" in (tmp_path / "out/suites.html").read_text()
    only_acc = write_evaluation(tmp_path / "acc", accuracies_of(OLMES, 0.3), metric="acc")
    missing = scored({"model": only_acc}, tmp_path / "without")["missing"]["OLMES_TASKS"]["model"]
    assert "olmes_arc_easy_cloze (5 shots)" in missing
    assert "olmes_boolq_cloze (5 shots)" not in missing


def test_a_comparison_of_models_has_the_suites_that_a_model_has_all_of(tmp_path: Path) -> None:
    models = {
        "base": write_evaluation(tmp_path / "base", accuracies_of(CORE_PLUS_MMLU, 0.7)),
        "tuned": write_evaluation(tmp_path / "tuned", accuracies_of(CORE, 0.75)),
    }
    config = CompareModelsConfig(models=models, output_path=str(tmp_path / "out"))
    result = compare_models(unwrap_versioned_value(config))
    assert {suite: set(of) for suite, of in result["suites"].items()} == {
        "CORE_TASKS": {"base", "tuned"},
        "CORE_TASKS_PLUS_MMLU": {"base"},
    }
    page = (tmp_path / "out/comparison.html").read_text()
    assert 'title="not evaluated: mmlu (0 shots), mmlu (5 shots)"' in page
    assert {row["suite"] for row in rows_of(tmp_path / "out")} == set(result["suites"])


@pytest.mark.parametrize(
    ("suite", "tasks"), [(CORE, evaluated.CORE_TASKS), (CORE_PLUS_MMLU, evaluated.CORE_TASKS_PLUS_MMLU)]
)
def test_a_suite_has_the_tasks_that_are_evaluated_by_its_name(
    suite: Suite, tasks: tuple[evaluated.EvalTask, ...]
) -> None:
    forms = [form for part in suite.parts for form in part.forms]
    assert [(form.task, form.shots) for form in forms] == [(task.name, task.num_fewshot) for task in tasks]
    assert [part.name for part in suite.parts] == [task.label for task in tasks]


PART = Part(name="copa", forms=(Form(task="copa", shots=0),))


@pytest.mark.parametrize(
    ("suites", "sentence"),
    [
        ((), "have the suites [], expected one at least, and each once."),
        ((CORE, CORE), "have the suites ['CORE_TASKS', 'CORE_TASKS'], expected one at least, and each once."),
        ((Suite(name="mine", parts=()),), "The suite 'mine' has the parts [], expected one at least"),
        ((Suite(name="mine", parts=(PART, PART)),), "has the parts ['copa', 'copa'], expected one at least, each once"),
        ((Suite(name="mine", parts=(PART,), centered=True),), "its part 'copa' has no baseline, expected the accuracy"),
        (
            (Suite(name="mine", parts=(Part(name="copa", forms=PART.forms, baseline=50),)),),
            "with the baseline 50, expected 0 or more and less than 1: a share, not per cent.",
        ),
    ],
)
def test_a_mistake_in_a_suite_is_one_sentence(suites: tuple[Suite, ...], sentence: str, tmp_path: Path) -> None:
    model = write_evaluation(tmp_path / "model", accuracies_of(CORE, 0.7))
    with pytest.raises(ReportError) as caught:
        scored({"model": model}, tmp_path / "out", suites=suites)
    assert sentence in str(caught.value)


def test_no_models_models_without_a_task_of_a_suite_and_damaged_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="have no models, expected one at least"):
        scored({}, tmp_path / "out")
    other = write_evaluation(tmp_path / "other", {("arc_easy", 3): 0.5})
    with pytest.raises(ReportError, match=r"'other' have no task of a suite, expected tasks of CORE_TASKS or OLMES"):
        scored({"other": other}, tmp_path / "out")
    Path(other, "results.json").write_text('{"results": 3}')
    with pytest.raises(ReportError, match=r"results.json' is damaged .*Evaluate the model again"):
        scored({"other": other}, tmp_path / "out")
