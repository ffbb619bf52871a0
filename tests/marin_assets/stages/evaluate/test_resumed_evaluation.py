"""An evaluation looks at all its requests first, keeps answers as they come, and counts what its window cuts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from marin_assets.inference import journal
from marin_assets.inference.jax_model import load_model
from marin_assets.inference.journal import FOLDER
from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_tasks.run_tasks import run_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import load_tasks
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

pytestmark = pytest.mark.long  # imports and compiling

SUMS = """
task: sums
output_type: generate_until
doc_to_target: "{{a}}"
generation_kwargs: {max_gen_toks: 6, until: ["."]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
CHOICES = """
task: choices
output_type: multiple_choice
doc_to_choice: ["{{a}}", "{{b}}", "none of the two"]
doc_to_target: 0
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
TEXTS = """
task: texts
output_type: loglikelihood_rolling
doc_to_target: "{{q}} {{a}}, {{q}} {{a}}, {{q}} {{a}}"
metric_list: [{metric: bits_per_byte, aggregation: bits_per_byte, higher_is_better: false}]
"""
LONG_CHOICE = """
task: long_choice
output_type: multiple_choice
doc_to_choice: ["{{a}}", "x y z {{a}} {{b}} {{q}} x y z {{a}} {{b}} {{q}} x y z {{a}} {{b}} {{q}} x y z {{a}} {{b}}"]
doc_to_target: 0
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
LONG_ANSWER = SUMS.replace("sums", "long_answer").replace("max_gen_toks: 6", "max_gen_toks: 64")
PENALTY = SUMS.replace("sums", "penalty").replace("{max_gen", "{temperature: 0.7, presence_penalty: 1, max_gen")
TASKS = (EvalTask("sums", 2), "choices", EvalTask("choices", 1, "choices_1shot"), "texts")


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"q": f"{n} + {n} is" + " really" * (n % 7), "a": str(2 * n), "b": str(3 * n)} for n in range(40)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}\ntest_split: test\n"
    for task in (SUMS, CHOICES, TEXTS, LONG_CHOICE, LONG_ANSWER, PENALTY):
        text = "" if "doc_to_text" in task or "rolling" in task else 'doc_to_text: "{{q}}"\n'
        name = task.split("\n")[1].removeprefix("task: ")
        (folder / f"{name}.yaml").write_text(task + text + ('doc_to_text: ""\n' if "rolling" in task else "") + data)
    return str(folder)


def config_of(model_path: str, tasks_path: str, output: Path, **fields: Any) -> LmEvalConfig:
    given: dict[str, Any] = {"tasks": TASKS, "batch_size": 4, "include_path": tasks_path, **fields}
    config: LmEvalConfig = unwrap_versioned_value(LmEvalConfig(model_path=model_path, output_path=str(output), **given))
    return config


def written(output: Path) -> dict[str, bytes]:
    return {name: (output / name).read_bytes() for name in ("scores.csv", "samples.jsonl")}


@pytest.fixture(scope="module")
def undisturbed(
    model_path: str, tasks_path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("undisturbed")
    return output, evaluate_with_lm_eval(config_of(model_path, tasks_path, output))


def test_a_task_that_cannot_run_is_refused_before_a_question_of_the_others_is_asked(
    model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    tasks = ("choices", EvalTask("texts", 1), EvalTask("long_choice", 3), "long_answer", "penalty")
    with pytest.raises(EvaluationError) as refused:
        evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, tasks=tasks, save_every_s=0.0))
    said = str(refused.value)
    assert "3 of 5 tasks cannot run on this model, so none was begun" in said
    assert "Task 'long_choice': A continuation has " in said
    assert "Task 'long_answer': A task generates 64 tokens, expected fewer than the window of 64" in said
    assert "Task 'penalty': A task generates with presence_penalty=1, which JAX does not have" in said
    assert not (tmp_path / FOLDER).exists()


SCRIPT = """
import json, sys
from marin_assets.stages.evaluate.lm_eval import evaluate_with_lm_eval
from marin_resources.wire.config_json import decode
print("begins", flush=True)
print(json.dumps(evaluate_with_lm_eval(decode(json.loads(sys.argv[1])))))
"""


@pytest.mark.timeout(1200)  # each of six processes imports and compiles
def test_kills_at_drawn_moments_change_no_score(
    undisturbed: tuple[Path, dict[str, Any]], model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    config = config_of(model_path, tasks_path, tmp_path, save_every_s=0.0)
    command = [sys.executable, "-c", SCRIPT, json.dumps(encode(config))]
    drawn, saved = random.Random(5), []
    for _ in range(5):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            goal = _saved(tmp_path) + drawn.randint(1, 60)
            while process.poll() is None and _saved(tmp_path) < goal:
                time.sleep(0.002)
            process.kill()
        saved.append(_saved(tmp_path))
    assert saved == sorted(saved)
    assert 0 < saved[0] < saved[-1]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == json.loads(json.dumps(undisturbed[1]))
    assert written(tmp_path) == written(undisturbed[0])
    assert not (tmp_path / FOLDER).exists()


def _saved(output: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in output.glob(f"{FOLDER}/*/[!.]*.jsonl"))


def test_kept_answers_are_those_of_the_same_requests_and_the_same_model(
    undisturbed: tuple[Path, dict[str, Any]],
    model_path: str,
    tasks_path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Answers that are found again are taken, here falsified ones; those to other questions are not."""
    from marin_assets.stages.evaluate import lm_eval

    with monkeypatch.context() as failing:
        failing.setattr(lm_eval, "write_jsonl", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path))
    parts = list(tmp_path.glob(f"{FOLDER}/generations-*/*.jsonl"))
    assert _saved(tmp_path) > 300
    for part in parts:
        part.write_text("".join(json.dumps(json.loads(row) | {"answer": "2"}) + "\n" for row in part.open()))
    fewer = evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path / "fewer", max_eval_instances=3))
    assert fewer["scores"]["sums"]["exact_match"] == 0
    again = evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path))
    assert again["scores"]["sums"]["exact_match"] == 1 / 40
    assert again["scores"]["choices"] == undisturbed[1]["scores"]["choices"]


def test_a_request_that_two_runs_have_is_answered_once(
    model_path: str, tasks_path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = (EvalTask("choices", 0), EvalTask("choices", 0, "again"), EvalTask("sums", 0), EvalTask("sums", 0, "twice"))
    with caplog.at_level("INFO", logger="marin_assets.stages.evaluate.models.kept_answers"):
        scores = evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, tasks=tasks))["scores"]
    messages = [record.getMessage() for record in caplog.records if record.name.endswith("kept_answers")]
    assert messages == [
        "120 of 120 log-likelihoods have an answer already",
        "40 of 40 generations have an answer already",
    ]
    assert (scores["choices"], scores["sums"]) == (scores["again"], scores["twice"])


def test_without_an_interval_a_journal_is_saved_as_often_as_a_fiftieth_of_the_time_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(journal.time, "monotonic", lambda: now)
    kept = journal.Journal(str(tmp_path), "x", save_every_s=None)

    def slow(path: str, content: bytes) -> None:
        nonlocal now
        now += 0.1

    monkeypatch.setattr(journal, "write_bytes", slow)
    times = []
    for place in range(100):
        now += 0.5
        before = now
        kept.add({"place": place})
        if now > before:
            times.append(place)
    assert times[:3] == [2, 13, 23], "after a second, then every five"


def test_the_requests_that_are_built_first_are_those_of_lm_eval(
    model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    from lm_eval import evaluator

    from marin_assets.stages.evaluate.models.jax_lm import JaxLM

    lm = JaxLM(*load_model(model_path), batch_size=4)
    config = config_of(model_path, tasks_path, tmp_path, tasks=(EvalTask("sums", 3), "choices"))
    ours = run_tasks(config, load_tasks(config, f"{tmp_path}/a"), lm)
    for name, shots in (("sums", 3), ("choices", None)):
        manager = load_tasks(config, f"{tmp_path}/{name}")
        theirs = evaluator.simple_evaluate(lm, tasks=[name], task_manager=manager, num_fewshot=shots, log_samples=True)
        assert ours["samples"][name] == theirs["samples"][name]
        assert ours["results"][name] == theirs["results"][name]


def test_questions_whose_context_the_window_cuts_are_counted(
    undisturbed: tuple[Path, dict[str, Any]], model_path: str, tasks_path: str, tmp_path: Path
) -> None:
    tasks = (EvalTask("sums", 8), "choices", EvalTask("choices", 8, "choices_8shot"), "texts")
    result = evaluate_with_lm_eval(config_of(model_path, tasks_path, tmp_path, tasks=tasks))
    assert result["cut_contexts_by_task"] == {"choices_8shot": 40, "sums": 40}
    assert result["cut_contexts"] == 80
    assert undisturbed[1]["cut_contexts"] == sum(undisturbed[1].get("cut_contexts_by_task", {}).values())
