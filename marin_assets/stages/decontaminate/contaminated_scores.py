"""Score an evaluation on the questions that the training data hold, and on the others: clean subsets, as in GPT-3
(Brown et al. 2020, arXiv:2005.14165, appendix C) and Llama 2 (Touvron et al. 2023, arXiv:2307.09288, appendix A.6).

In:  an evaluation (`samples.jsonl`, `scores.csv`, `results.json`), the questions of its tasks (`questions.jsonl`:
     {id, task, doc_id, text}), and for each set of documents that the model was trained on an output of
     `find_contamination` that searched it for these questions.
Out: `contaminated_scores.json`, by task the questions and the scores on all, on the contaminated and on the clean ones;
     `contaminated.jsonl`, a row for each contaminated question: its documents in each set, and an example;
     `contaminated_scores.html`, both to read.

Documents that were removed before the training are in no set, so they do not count.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow, read_rows, write_rows
from marin_assets.stages.decontaminate.contaminated_page import contaminated_page
from marin_assets.stages.decontaminate.find_contamination import REPORT, ContaminationError
from marin_assets.stages.decontaminate.words import words_of
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import exists, read_bytes, read_json, write_bytes, write_json
from marin_resources.storage.paths import join

KINDS = ("html",)

EVALUATION = "questions"
"""Name of the questions among the evaluations of `find_contamination`."""
JSON, ROWS, PAGE = "contaminated_scores.json", "contaminated.jsonl", "contaminated_scores.html"
SAMPLES, TABLE, RESULTS, QUESTIONS = "samples.jsonl", "scores.csv", "results.json", "questions.jsonl"
FORMAT_VERSION = 1
SAME = 1e-6
"""A metric whose mean over the questions differs from the score by more is no such mean, as F1 of a corpus."""
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ContaminatedScoresConfig:
    evaluation_path: str
    """Output of `evaluate_with_lm_eval`."""
    questions_path: str
    """Output of `write_task_questions`, of the same tasks."""
    searched: dict[str, str]
    """Name of a set of training documents -> output of `find_contamination`, with the questions as "questions"."""
    output_path: str = THIS_OUTPUT_PATH
    not_searched: tuple[str, ...] = versioned(())
    """Other data that the model was trained on, such as chats, which nobody searched."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def score_contaminated(config: ContaminatedScoresConfig) -> dict[str, Any]:
    """Count the contaminated questions of each task, and score the model with and without them.

    Returns questions, questions_contaminated, contaminated_share, not_searched, tasks (by task: questions,
    questions_contaminated, contaminated_share, questions_not_searchable, which are too short or too common, and scores:
    by metric the mean on "all", "contaminated" and "clean" questions, with value, error (standard error) and questions)
    and page. A group has the sums of its members, without scores. Raises ContaminationError.
    """
    _check(config)
    reports = {name: _report(name, path) for name, path in config.searched.items()}
    rule = _one_rule(reports)
    questions = {row["id"]: row for row in _rows(join(config.questions_path, QUESTIONS))}
    samples = _samples(config.evaluation_path)
    places = {(row["task"], row["doc_id"]): id for id, row in questions.items()}
    _require_questions(samples, places)
    matches = _found(reports)
    lost = {id for report in reports.values() for _, id in report["too_common"]}
    lost |= {id for id, row in questions.items() if len(words_of(row["text"])) < rule["min_ngram"]}
    lost -= matches.keys()
    table = _table(config.evaluation_path)
    tasks = {
        task: _task([(row, places[task, doc_id]) for doc_id, row in of.items()], matches, lost, table.get(task, {}))
        for task, of in samples.items()
    }
    with_groups = {**tasks, **_groups(config.evaluation_path, tasks)}
    contaminated = [
        {"task": task, "doc_id": doc_id, **_contaminated(questions[id]["text"], matches[id])}
        for task, of in samples.items()
        for doc_id in of
        if (id := places[task, doc_id]) in matches
    ]
    content = {
        "format_version": FORMAT_VERSION,
        "rule": rule,
        "searched": list(reports),
        "not_searched": list(config.not_searched),
        "tasks": with_groups,
    }
    write_json(join(config.output_path, JSON), content)
    write_rows(join(config.output_path, ROWS), contaminated)
    write_bytes(join(config.output_path, PAGE), contaminated_page(content, contaminated))
    total, count = sum(of["questions"] for of in tasks.values()), len(contaminated)
    return {
        "questions": total,
        "questions_contaminated": count,
        "contaminated_share": count / total,
        "not_searched": list(config.not_searched),
        "tasks": with_groups,
        "page": PAGE,
    }


def _check(config: ContaminatedScoresConfig) -> None:
    if not config.searched:
        raise ContaminationError(
            "searched is empty, expected {set of training documents: output of find_contamination}. Pass one."
        )


def _report(name: str, path: str) -> Row:
    file = join(path, REPORT)
    if not exists(file):
        raise ContaminationError(f"{file!r} does not exist, for {name!r}. Pass an output of find_contamination.")
    report: Row = read_json(file)
    if set(report["evaluations"]) != {EVALUATION}:
        raise ContaminationError(
            f"{file!r} is of the evaluations {sorted(report['evaluations'])}, expected {EVALUATION!r} alone. Search "
            f"with evaluations={{{EVALUATION!r}: path of questions.jsonl}}."
        )
    return report


def _one_rule(reports: Mapping[str, Row]) -> Row:
    (first, expected), *others = reports.items()
    for name, report in others:
        if report["rule"] != expected["rule"]:
            raise ContaminationError(
                f"{name!r} was searched with {report['rule']}, and {first!r} with {expected['rule']}. Search both with "
                "one rule."
            )
    rule: Row = expected["rule"]
    return rule


def _rows(path: str) -> Iterator[Row]:
    if not exists(path):
        raise ContaminationError(f"{path!r} does not exist. Pass the output that has it.")
    for number, row in read_rows(path):
        if isinstance(row, BadRow):
            raise ContaminationError(f"{path!r} line {number} is damaged ({row.detail:.200}). Make the file again.")
        yield dict(row)


def _samples(path: str) -> dict[str, dict[Any, Row]]:
    """By task and doc_id the numbers of each answer. Its texts would fill the memory."""
    by_task: dict[str, dict[Any, Row]] = {}
    for row in _rows(join(path, SAMPLES)):
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        by_task.setdefault(row["task"], {})[row["doc_id"]] = numbers
    if not by_task:
        raise ContaminationError(f"The evaluation {path!r} has no answer. Pass one with tasks.")
    return by_task


def _require_questions(samples: Mapping[str, Mapping[Any, Row]], places: Mapping[tuple[str, Any], str]) -> None:
    for task, of in samples.items():
        for doc_id in of:
            if (task, doc_id) not in places:
                raise ContaminationError(
                    f"The evaluation has an answer to question {doc_id!r} of {task!r}, which is not among the "
                    "questions. Write the questions of the tasks of this evaluation."
                )


def _found(reports: Mapping[str, Row]) -> dict[str, dict[str, Row]]:
    """Id of a contaminated question -> set of documents -> what its report has of the question."""
    matches: dict[str, dict[str, Row]] = {}
    for name, report in reports.items():
        for question in report["questions_found"]:
            matches.setdefault(question["id"], {})[name] = question
    return matches


def _table(path: str) -> dict[str, dict[str, float]]:
    """Task -> metric -> score."""
    scores: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(read_bytes(join(path, TABLE)).decode())):
        scores.setdefault(row["task"], {})[row["metric"]] = float(row["value"])
    return scores


def _task(
    answers: Sequence[tuple[Row, str]], matches: Mapping[str, Any], lost: set[str], scores: Mapping[str, float]
) -> Row:
    """`answers`: the numbers of each answer, with the id of its question."""
    metrics = {}
    for metric, score in scores.items():
        if all(metric in row for row, _ in answers):
            of_all = _mean([row[metric] for row, _ in answers])
            if of_all is not None and abs(of_all["value"] - score) <= SAME:
                metrics[metric] = {
                    "all": of_all,
                    "contaminated": _mean([row[metric] for row, id in answers if id in matches]),
                    "clean": _mean([row[metric] for row, id in answers if id not in matches]),
                }
    contaminated = sum(id in matches for _, id in answers)
    return {**_counts(len(answers), contaminated, sum(id in lost for _, id in answers)), "scores": metrics}


def _counts(questions: int, contaminated: int, lost: int) -> Row:
    return {
        "questions": questions,
        "questions_contaminated": contaminated,
        "contaminated_share": contaminated / questions,
        "questions_not_searchable": lost,
    }


def _mean(values: Sequence[float]) -> Row | None:
    """The mean with its standard error, that of lm-eval: from the deviation of the sample. None without values."""
    if not values:
        return None
    count, mean = len(values), math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    error = math.sqrt(squares / (count - 1) / count) if count > 1 else None
    return {"value": mean, "error": error, "questions": count}


def _groups(path: str, tasks: Mapping[str, Row]) -> dict[str, Row]:
    """The sums of each group, over the tasks below it."""
    file = join(path, RESULTS)
    try:
        members: Mapping[str, Sequence[str]] = json.loads(read_bytes(file)).get("group_subtasks") or {}
    except ValueError as error:
        raise ContaminationError(f"{file!r} is damaged ({error}). Evaluate the model again.") from None
    groups = {}
    for group in members:
        below, edge = {group}, [group]
        while edge:
            edge = [name for of in edge for name in members.get(of, ()) if name not in below]
            below.update(edge)
        of_group = [tasks[name] for name in below if name in tasks]
        if of_group and group not in tasks:
            keys = ("questions", "questions_contaminated", "questions_not_searchable")
            groups[group] = {**_counts(*(sum(of[key] for of in of_group) for key in keys)), "scores": {}}
    return groups


def _contaminated(text: str, of: Mapping[str, Row]) -> Row:
    """A contaminated question: its documents by set, and the example with the largest share of its n-grams."""
    largest = max(of, key=lambda name: of[name]["example"]["share"])
    return {
        "text": text,
        "documents": {name: question["documents"] for name, question in of.items()},
        "example": {"set": largest, **of[largest]["example"]},
    }
