"""Write the questions of lm-eval's tasks as text, without solved examples: what a training text must not contain.

In:  the tasks of an evaluation, and where their data are: the fields of `LmEvalConfig`. No model is read.
Out: `questions.jsonl`, a row for each question of each task:

id          "<task>/<doc_id>", one for each row
task        the label of the task's scores, as in `samples.jsonl`
doc_id      the number of the question, as in `samples.jsonl`
text        the question and the true answer, joined by a space; of a task that scores whole texts, the text

`find_contamination` reads the rows with fields={…: ["text"]}.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.stages.evaluate.lm_eval_config import EvaluationError, LmEvalConfig, check_tasks, eval_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.labels import label_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.run_tasks import run_together
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import data_of_tasks, isolated_hugging_face, load_tasks
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.paths import join

KINDS = ("lm-eval",)

QUESTIONS = "questions.jsonl"


@dataclass(frozen=True, kw_only=True)
class TaskQuestionsConfig:
    """The fields of `LmEvalConfig` that decide which questions a task has."""

    tasks: tuple[str | EvalTask, ...]
    """Names of tasks or groups, versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    held_out_path: str | None = None
    include_path: str | None = None
    use_hub: bool = False
    mirror_path: str | None = None
    num_fewshot: int | None = versioned(None)
    """It decides nothing but labels: tasks of one name at two numbers of shots have two."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def write_task_questions(config: TaskQuestionsConfig) -> dict[str, Any]:
    """Write the questions of all tasks.

    Returns questions, tasks, and questions_by_task. Raises EvaluationError for an unknown task, or one whose questions
    have no text; MirrorError for a task whose data the mirror lacks.
    """
    _check(config)
    of_tasks = _evaluation(config)
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="lm-eval-") as folder,
        isolated_hugging_face(folder, config.use_hub),
        data_of_tasks(of_tasks, f"{folder}/mirror"),
    ):
        rows = _rows(of_tasks, load_tasks(of_tasks, folder), counts)
        write_jsonl(join(config.output_path, QUESTIONS), rows)
    return {"questions": counts.total(), "tasks": len(counts), "questions_by_task": dict(counts)}


def _check(config: TaskQuestionsConfig) -> None:
    check_tasks(_evaluation(config))


def _evaluation(config: TaskQuestionsConfig) -> LmEvalConfig:
    """The evaluation of no model on the tasks."""
    fields = ("tasks", "held_out_path", "include_path", "use_hub", "mirror_path", "num_fewshot")
    same = {name: getattr(config, name) for name in fields}
    return LmEvalConfig(model_path="", max_eval_instances=None, max_length=None, **same)


def _rows(config: LmEvalConfig, manager: Any, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    from marin_assets.stages.evaluate.lm_eval_tasks.task_requests import PreparedTasks  # imports lm-eval at its top

    random.seed(0)  # GPQA draws the order of its choices; an evaluation has a seed too
    loaded = []
    for together in run_together(eval_tasks(config)):
        prepared = PreparedTasks(manager)
        tasks = prepared.load([task.name for task in together])["tasks"]
        loaded += [(task, prepared.members[task.name], tasks) for task in together]
    labels = label_tasks([(task, members) for task, members, _ in loaded])
    for (_, members, tasks), of in zip(loaded, labels, strict=True):
        for name in dict.fromkeys(members):
            if name in tasks and of[name] not in counts:
                yield from _rows_of_task(of[name], tasks[name], counts)


def _rows_of_task(label: str, task: Any, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    for doc_id, doc in enumerate(task.eval_docs):
        counts[label] += 1
        yield {"id": f"{label}/{doc_id}", "task": label, "doc_id": doc_id, "text": text_of_question(label, task, doc)}


def text_of_question(label: str, task: Any, doc: Mapping[str, Any]) -> str:
    """Return the question with its true answer. Raises EvaluationError for one that has no text.

    A task may have the choices in the context, as Winogrande: then its question is the number of the true choice.
    """
    try:
        question, answer = task.doc_to_text(doc), task.doc_to_target(doc)
        if isinstance(question, int):
            question = task.doc_to_choice(doc)[question]
        answer = answer[0] if isinstance(answer, list) and answer else answer
        if isinstance(answer, int) and task.OUTPUT_TYPE == "multiple_choice":
            answer = task.doc_to_choice(doc)[answer]
    except Exception as error:  # of the task's templates and functions
        raise EvaluationError(
            f"A question of the task {label!r} cannot be written: {type(error).__name__}: {error!s:.300}. Repair "
            "its YAML or its functions, or leave it out of `tasks`."
        ) from error
    text = " ".join(part for part in (question, answer) if isinstance(part, str) and part)
    if not text:
        raise EvaluationError(
            f"A question of the task {label!r} is {question!r:.80} with the answer {answer!r:.80}, expected a text. "
            "Leave the task out of `tasks`."
        )
    return text
