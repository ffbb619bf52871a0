"""The questions of lm-eval's tasks as text: without solved examples, with the true answer, one row for each answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.stages.decontaminate.contaminated_scores import ContaminatedScoresConfig, score_contaminated
from marin_assets.stages.decontaminate.find_contamination import FindContaminationConfig, find_contamination
from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.evaluate.task_questions import TaskQuestionsConfig, write_task_questions
from marin_assets.step.values import unwrap_versioned_value

WORDS = [
    "apple",
    "stone",
    "river",
    "cloud",
    "window",
    "garden",
    "paper",
    "silver",
    "forest",
    "candle",
    "bridge",
    "snow",
]
QUESTIONS = 12
HEAD = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
fewshot_split: test
"""
PLAIN = 'doc_to_text: "{{q}}"\n'
METRIC = "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]\n"
CHOICE = "output_type: multiple_choice\n"
TASKS = {
    "number": f'{CHOICE}{PLAIN}doc_to_choice: "{{{{[b, a]}}}}"\ndoc_to_target: 1\n{METRIC}',
    "choice": f'{CHOICE}{PLAIN}doc_to_choice: "{{{{[b, a]}}}}"\ndoc_to_target: "{{{{a}}}}"\n{METRIC}',
    "inside": f'{CHOICE}doc_to_text: "{{{{1}}}}"\n'
    f'doc_to_choice: "{{{{[q ~ b, q ~ a]}}}}"\ndoc_to_target: end\n{METRIC}',
    "written": f"output_type: generate_until\n{PLAIN}doc_to_target: a\n"
    "generation_kwargs: {max_gen_toks: 6, until: [.]}\n"
    "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n",
    "whole": 'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{q}}"\n'
    "metric_list: [{metric: bits_per_byte, aggregation: bits_per_byte, higher_is_better: false}]\n",
    "broken": f'{CHOICE}doc_to_text: "{{{{1 // (n - 5)}}}} is"\n'
    f'doc_to_choice: "{{{{[b, a]}}}}"\ndoc_to_target: 1\n{METRIC}',
}
GROUP = "group: all\ntask: [number, written]\n"


def question(n: int) -> str:
    return f"How many {' '.join(WORDS[n:] + WORDS[:n])} make {n}?"


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"q": question(n), "a": f"yes {n}", "b": "no", "n": n} for n in range(QUESTIONS)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(HEAD.format(name=name, folder=folder) + text)
    (folder / "all.yaml").write_text(GROUP)
    return folder


def write(folder: Path, tasks_path: Path, *tasks: str | EvalTask) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    config = TaskQuestionsConfig(
        tasks=tasks, include_path=str(tasks_path), output_path=f"{folder}/questions", num_fewshot=None
    )
    result = write_task_questions(unwrap_versioned_value(config))
    return result, [json.loads(line) for line in (folder / "questions/questions.jsonl").read_text().splitlines()]


def test_a_question_has_the_true_answer_however_its_task_is_written(tmp_path: Path, tasks_path: Path) -> None:
    result, rows = write(tmp_path, tasks_path, "number", "choice", "inside", "written", "whole")
    assert (result["questions"], result["tasks"]) == (5 * QUESTIONS, 5)
    texts = {row["id"]: row["text"] for row in rows}
    assert texts["number/3"] == texts["choice/3"] == texts["written/3"] == f"{question(3)} yes 3"
    assert texts["inside/3"] == f"{question(3)}yes 3 end"
    assert texts["whole/3"] == question(3)


def test_groups_and_numbers_of_shots_have_the_labels_of_their_scores(tmp_path: Path, tasks_path: Path) -> None:
    result, rows = write(tmp_path, tasks_path, EvalTask("all", 0, "few"), EvalTask("number", 0), EvalTask("number", 2))
    assert result["questions_by_task"].keys() == {"few/number", "few/written", "number_0shot", "number_2shot"}
    assert len({row["id"] for row in rows}) == len(rows) == 4 * QUESTIONS


def test_a_task_that_cannot_be_written_is_refused_by_its_name(tmp_path: Path, tasks_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"\AA question of the task 'broken' cannot be written: .*\Z"):
        write(tmp_path, tasks_path, "broken")
    with pytest.raises(EvaluationError, match=r"The task is 'numbr', expected one of .*Did you mean 'number'"):
        write(tmp_path, tasks_path, "numbr")
    with pytest.raises(EvaluationError, match="no tasks"):
        write(tmp_path, tasks_path)


@pytest.mark.long  # a model answers
def test_an_evaluation_with_shots_is_split_by_what_the_documents_hold(
    tmp_path: Path, tasks_path: Path, model_path: str
) -> None:
    tasks = (EvalTask("number", 2), EvalTask("all", 0, "few"), "whole")
    config = LmEvalConfig(
        model_path=model_path, output_path=f"{tmp_path}/scores", include_path=str(tasks_path), tasks=tasks,
        max_eval_instances=8,
    )  # fmt: skip
    evaluate_with_lm_eval(unwrap_versioned_value(config))
    write(tmp_path, tasks_path, *tasks)
    planted = [question(2), question(5).upper(), question(11)]
    documents = [Document(id=str(n), text=f"Before. {text} After.") for n, text in enumerate(planted)]
    write_documents(f"{tmp_path}/documents/a.jsonl.zst", documents)
    search = FindContaminationConfig(
        documents_path=f"{tmp_path}/documents", output_path=f"{tmp_path}/searched", fields={"questions": ["text"]},
        evaluations={"questions": f"{tmp_path}/questions/questions.jsonl"},
    )  # fmt: skip
    find_contamination(unwrap_versioned_value(search))
    scored = ContaminatedScoresConfig(
        evaluation_path=f"{tmp_path}/scores", questions_path=f"{tmp_path}/questions",
        searched={"all": f"{tmp_path}/searched"}, output_path=f"{tmp_path}/contamination", not_searched=(),
    )  # fmt: skip
    result = score_contaminated(scored)
    of = result["tasks"]
    assert of.keys() == {"number", "few/number", "few/written", "whole", "few"}
    assert {task: numbers["questions_contaminated"] for task, numbers in of.items()} == {
        "number": 2, "few/number": 2, "few/written": 2, "whole": 2, "few": 4,
    }, "8 questions were answered, so the last planted one does not count"  # fmt: skip
    parts = of["number"]["scores"]["acc"]
    assert [parts[name]["questions"] for name in ("all", "contaminated", "clean")] == [8, 2, 6]
    weighted = (2 * parts["contaminated"]["value"] + 6 * parts["clean"]["value"]) / 8
    assert weighted == pytest.approx(parts["all"]["value"])
