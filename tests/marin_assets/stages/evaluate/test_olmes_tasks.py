"""The tasks of OLMES in both forms, with data as the hub has them, in a mirror."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import TASKS, data_of_tasks, isolated_hugging_face, load_tasks
from marin_assets.stages.evaluate.suites import OLMES_TASKS, EvalTask
from marin_assets.stages.report.models_by_tasks.suites.olmes import OLMES
from marin_assets.stages.report.models_by_tasks.suites.score_suites import ScoreSuitesConfig, score_suites
from marin_assets.step.values import unwrap_versioned_value

QUESTIONS, SHOTS = 3, 5
SUBJECTS = [task["dataset_name"] for task in yaml.safe_load((TASKS / "olmes/mmlu_choice.yaml").read_text())["task"]]
LETTERS = ["A", "B", "C", "D", "E"]


def labelled(count: int) -> dict[str, Any]:
    return {"label": LETTERS[:count], "text": [f"thing {n}" for n in range(count)]}


ROWS: dict[str, dict[str, Any]] = {
    "allenai/ai2_arc/ARC-Challenge": {"question": "Q?", "choices": {**labelled(4), "label": ["1", "2", "3", "4"]}},
    "allenai/ai2_arc/ARC-Easy": {"question": "Q?", "choices": labelled(3), "answerKey": "B"},
    "allenai/openbookqa/main": {"question_stem": "Q is", "choices": labelled(4), "answerKey": "B"},
    "tau/commonsense_qa/default": {"question": "Q?", "choices": labelled(5), "answerKey": "B"},
    "baber/piqa/default": {"goal": "Do it", "sol1": "so", "sol2": "or so", "label": 1},
    "lighteval/siqa/default": {
        "context": "C.",
        "question": "Q?",
        **{f"answer{letter}": letter * 2 for letter in "ABC"},
        "label": "2",
    },
    "aps/super_glue/boolq": {"passage": "P.", "question": "is it", "label": 0, "idx": 0},
    "Rowan/hellaswag/default": {
        "activity_label": "Act",
        "ctx_a": "One does",
        "ctx_b": "then one",
        "endings": ["stops.", "goes [title] now.", "waits.", "ends."],
        "label": "1",
    },
    "allenai/winogrande/winogrande_xl": {
        "sentence": "The _ is big.",
        "option1": "cat",
        "option2": "dog",
        "answer": "2",
    },
    **{
        f"cais/mmlu/{subject}": {"question": " Q? ", "choices": ["w", "x", "y", "z"], "answer": 1}
        for subject in SUBJECTS
    },
}
ROWS["allenai/ai2_arc/ARC-Challenge"]["answerKey"] = "2"
SPLITS = {"train": 8, "validation": QUESTIONS, "test": QUESTIONS, "dev": SHOTS}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("mirror")
    for folder, row in ROWS.items():
        (root / folder).mkdir(parents=True)
        for split, count in SPLITS.items():
            rows = [
                {**row, **{key: f"{row[key]}#{split}{n}" for key in ("goal", "passage") if key in row}}
                for n in range(count)
            ]
            (root / folder / f"{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return str(root)


def evaluate(model_path: str, mirror: str, output: Path, *tasks: str | EvalTask) -> dict[str, Any]:
    config = LmEvalConfig(model_path=model_path, output_path=str(output), mirror_path=mirror, tasks=tasks)
    output.mkdir(exist_ok=True)
    result = evaluate_with_lm_eval(unwrap_versioned_value(config))
    (output / ".executor_info").write_text(json.dumps({"name": output.name, "result": result}))
    return result


def first_rows(output: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]
    return {row["task"]: row for row in reversed(rows)}


def first_requests(mirror: str, folder: Path, name: str) -> list[tuple[str, str]]:
    """The requests of the first question of a task: context and continuation."""
    fields: Any = {"model_path": "m", "output_path": "o", "mirror_path": mirror, "tasks": (name,)}
    config = unwrap_versioned_value(LmEvalConfig(**fields))
    with isolated_hugging_face(str(folder), use_hub=False), data_of_tasks(config, str(folder)):
        task = load_tasks(config, str(folder)).load([name])["tasks"][name]
        task.build_all_requests(limit=1)
    return [request.args for request in task.instances]


def test_both_forms_of_a_task_have_five_solved_examples_of_the_training_split(mirror: str, tmp_path: Path) -> None:
    (context, first), (_, second) = first_requests(mirror, tmp_path, "olmes_piqa_cloze")
    shots = [f"Goal: Do it#train{n}\nAnswer: or so" for n in range(5)]
    assert context.split("\n\n") == [*shots, "Goal: Do it#validation0\nAnswer:"]
    assert (first, second) == (" so", " or so")
    (context, first), (_, second) = first_requests(mirror, tmp_path, "olmes_piqa_choice")
    shots = [f"Goal: Do it#train{n}\n A. so\n B. or so\nAnswer: B" for n in range(5)]
    assert context.split("\n\n") == [*shots, "Goal: Do it#validation0\n A. so\n B. or so\nAnswer:"]
    assert (first, second) == (" A", " B")


EXPECTED = {
    "arc_challenge_choice": ("Question: Q?\n A. thing 0\n B. thing 1\n C. thing 2\n D. thing 3\nAnswer:", LETTERS[:4]),
    "arc_easy_choice": ("Question: Q?\n A. thing 0\n B. thing 1\n C. thing 2\nAnswer:", LETTERS[:3]),
    "arc_easy_cloze": ("Question: Q?\nAnswer:", ["thing 0", "thing 1", "thing 2"]),
    "openbookqa_cloze": ("Question: Q is\nAnswer:", ["thing 0", "thing 1", "thing 2", "thing 3"]),
    "csqa_choice": (
        "Question: Q?\n A. thing 0\n B. thing 1\n C. thing 2\n D. thing 3\n E. thing 4\nAnswer:",
        LETTERS,
    ),
    "social_iqa_cloze": ("Question: C. Q?\nAnswer:", ["AA", "BB", "CC"]),
    "boolq_cloze": ("P.#validation0\nQuestion: is it?\nAnswer:", ["yes", "no"]),
    "boolq_choice": ("P.#validation0\nQuestion: is it?\n A. yes\n B. no\nAnswer:", ["A", "B"]),
    "hellaswag_cloze": ("Act: One does Then one", ["stops.", "goes. now.", "waits.", "ends."]),
    "hellaswag_choice": (
        "Act: One does Then one\nChoose the best continuation:\n"
        " A. stops.\n B. goes. now.\n C. waits.\n D. ends.\nAnswer:",
        LETTERS[:4],
    ),
    "winogrande_choice": ("Fill in the blank: The _ is big.\n A. cat\n B. dog\nAnswer:", ["A", "B"]),
    "winogrande_cloze": ("The cat", ["is big.", "is big."]),
}


@pytest.mark.long  # all tasks, with their 57 subjects twice
def test_every_task_runs_in_both_forms_and_the_suite_has_the_better_ones(
    model_path: str, mirror: str, tmp_path: Path
) -> None:
    result = evaluate(model_path, mirror, tmp_path / "out", *OLMES_TASKS)
    assert {task.name for task in OLMES_TASKS} <= result["scores"].keys()
    rows = first_rows(tmp_path / "out")
    for task, (question, choices) in EXPECTED.items():
        row = rows[f"olmes_{task}"]
        shots = row["context"].split("\n\n")
        assert (len(shots), shots[-1], row["choices"]) == (6, question, choices), task
        assert row["target"] in ("1", 1, "B", "is big."), (task, row["target"])
    assert rows["olmes_mmlu_choice::mmlu-anatomy"]["context"].endswith(
        "Question: Q?\n A. w\n B. x\n C. y\n D. z\nAnswer:"
    )
    for part in OLMES.parts:
        for form in part.forms:
            assert form.metric in result["scores"][form.task], form
    config = ScoreSuitesConfig(models={"tiny": str(tmp_path / "out")}, output_path=str(tmp_path / "suites"))
    suites = score_suites(unwrap_versioned_value(config))
    scores = [max(result["scores"][form.task][form.metric] for form in part.forms) for part in OLMES.parts]
    assert suites["suites"] == {"OLMES_TASKS": {"tiny": pytest.approx(sum(scores) / 10)}}
    assert (suites["missing"], suites["without_suite"]) == ({}, [])


def test_the_suite_has_the_forms_that_the_report_expects() -> None:
    forms = [(form.task, form.shots) for part in OLMES.parts for form in part.forms]
    assert [(task.name, task.num_fewshot) for task in OLMES_TASKS] == forms


def test_a_task_of_olmes_with_a_typo_is_one_sentence(tmp_path: Path) -> None:
    config = LmEvalConfig(model_path="m", output_path="o", mirror_path="m", tasks=("olmes_arc_easy_close",))
    with pytest.raises(EvaluationError, match="Did you mean 'olmes_arc_easy_cloze'"):
        load_tasks(unwrap_versioned_value(config), str(tmp_path))
