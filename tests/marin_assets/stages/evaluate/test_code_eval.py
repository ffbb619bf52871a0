"""Programs of a model are scored in the sandbox, if the evaluation confirms it."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from marin_assets.inference.journal import FOLDER
from marin_assets.stages.evaluate.lm_eval import EvaluationError, HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.task_questions import TaskQuestionsConfig, write_task_questions
from marin_assets.stages.evaluate.tasks.code_eval import CodeEval, pass_at
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.host.sandbox import SandboxError

RIGHT, WRONG, ENDS = "def add(a, b): return a + b", "def add(a, b): return a * b", "import sys; sys.exit(0)"
TESTS = "assert add(2, 3) == 5"

TASK = """
task: programs
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
unsafe_code: true
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{test}}}}"
generation_kwargs: {{max_gen_toks: 6, until: ["\\n"]}}
metric_list: [{{metric: !function programs_code.scored, aggregation: mean, higher_is_better: true}}]
filter_list: [{{name: program, filter: [{{function: custom, filter_fn: !function programs_code.programs}}]}}]
"""
CODE = """
import evaluate

metric = evaluate.load("code_eval")
metric.compute(references=["assert True"], predictions=[[""]], k=[1])

def scored(references, predictions):
    return metric.compute(references=references, predictions=predictions, k=[1])[0]

def programs(resps, docs):
    return [[doc["prompt"] + text for text in texts] for texts, doc in zip(resps, docs)]
"""
UNSAFE = "tag: [mine]\n"


def test_pass_at_k_is_the_share_of_the_draws_with_a_right_answer() -> None:
    for answers, right in ((1, 0), (1, 1), (5, 2), (6, 0), (6, 6), (7, 3)):
        for k in range(1, answers + 1):
            draws = list(combinations(range(answers), k))
            assert pass_at(k, answers, right) == pytest.approx(sum(min(draw) < right for draw in draws) / len(draws))


@pytest.mark.usefixtures("sandbox")
def test_candidates_are_run_with_their_tests() -> None:
    means, outcomes = CodeEval().compute(
        references=[TESTS, TESTS], predictions=[[RIGHT, WRONG, RIGHT], [ENDS, WRONG, "def add(:"]], k=[1, 2]
    )
    assert means == {"pass@1": pytest.approx(1 / 3), "pass@2": pytest.approx(1 / 2)}
    assert [[tried["passed"] for _, tried in outcomes[problem]] for problem in (0, 1)] == [
        [True, False, True],
        [False, False, False],
    ]
    assert outcomes[1][0][1] == {"task_id": 1, "passed": False, "result": "SystemExit: 0", "completion_id": 0}


@pytest.mark.parametrize("predictions", [[[RIGHT, RIGHT], [RIGHT]], []])
def test_fewer_candidates_than_k_are_refused(predictions: list[list[str]]) -> None:
    with pytest.raises(EvaluationError, match=r"pass@2 needs as many answers to a question, and one has \d. Set the"):
        CodeEval().compute(references=[TESTS] * len(predictions), predictions=predictions, k=[2])


@pytest.fixture
def tasks_path(tmp_path: Path) -> Path:
    """A task whose answers are comments after a program: each second program is right."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    rows = [{"prompt": f"{(RIGHT, WRONG)[n % 2]}\n# {n}", "test": TESTS} for n in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "programs.yaml").write_text(TASK.format(folder=folder) + UNSAFE)
    (folder / "programs_code.py").write_text(CODE)
    (folder / "group.yaml").write_text("group: ours\ntask: [{task: programs, task_alias: p}]\n")
    return folder


def evaluate(model_path: str, tasks_path: Path, output: Path, task: str = "programs", **options: Any) -> dict[str, Any]:
    config = LmEvalConfig(
        model_path=model_path,
        output_path=str(output),
        include_path=str(tasks_path),
        tasks=(task,),
        options=HarnessOptions(**options),
    )
    return evaluate_with_lm_eval(unwrap_versioned_value(config))


@pytest.mark.long
@pytest.mark.usefixtures("sandbox")
def test_programs_are_scored_by_whether_they_pass_their_tests(
    model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    scores = evaluate(model_path, tasks_path, tmp_path / "out", confirm_run_unsafe_code=True)["scores"]["programs"]
    assert scores["pass@1_program"] == 0.5, scores
    rows = [json.loads(line) for line in (tmp_path / "out/samples.jsonl").read_text().splitlines()]
    assert [row["pass@1_program"] for row in rows] == [1, 0] * 3


@pytest.mark.long
@pytest.mark.parametrize("task", ["programs", "mine", "ours"])
def test_without_confirmation_it_is_refused_before_an_answer(
    task: str, model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    with pytest.raises(EvaluationError, match=r"Task 'programs' runs the programs that the model writes. Pass Harness"):
        evaluate(model_path, tasks_path, tmp_path / "out", task)
    assert not (tmp_path / "out" / FOLDER).exists()


@pytest.mark.long
def test_without_a_sandbox_it_is_refused_before_an_answer(
    model_path: str, tasks_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="'bwrap' is not installed"):
        evaluate(model_path, tasks_path, tmp_path / "out", confirm_run_unsafe_code=True)
    assert not (tmp_path / "out" / FOLDER).exists()


@pytest.mark.long
@pytest.mark.usefixtures("sandbox")
def test_the_questions_of_such_a_task_are_written_without_confirmation(tasks_path: Path, tmp_path: Path) -> None:
    config = TaskQuestionsConfig(tasks=("programs",), output_path=str(tmp_path / "out"), include_path=str(tasks_path))
    assert write_task_questions(unwrap_versioned_value(config))["questions"] == 6
