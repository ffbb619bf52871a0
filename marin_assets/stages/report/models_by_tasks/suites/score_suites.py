"""Score models by suites of tasks: means of centered accuracies, and of the better forms of tasks.

In:  the outputs of evaluations (evaluate_with_lm_eval), by model; none is evaluated again.
Out: `suites.html`, a table of each suite; `suites.jsonl`, a row for each model, suite and form of a task, and for each
     mean.

A mean exists where the evaluation has all tasks of the suite, in all forms and with the suite's shots. Tasks that no
suite has are left out, and named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from marin_assets.stages.report.models_by_tasks.head import HEAD
from marin_assets.stages.report.models_by_tasks.suites.core import CORE
from marin_assets.stages.report.models_by_tasks.suites.olmes import OLMES
from marin_assets.stages.report.models_by_tasks.suites.scores import (
    SuiteScore,
    TaskScores,
    members_of_groups,
    rows_of,
    score_suite,
    scores_by_task,
)
from marin_assets.stages.report.models_by_tasks.suites.section import lacking, suite_section
from marin_assets.stages.report.models_by_tasks.suites.suite import Suite, check_suite
from marin_assets.stages.report.records import ReportError, read_records
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import join

KINDS = ("html",)

PAGE, ROWS = "suites.html", "suites.jsonl"


@dataclass(frozen=True, kw_only=True)
class ScoreSuitesConfig:
    models: dict[str, str]
    """Name -> output of an evaluation."""
    output_path: str = THIS_OUTPUT_PATH
    suites: tuple[Suite, ...] = versioned((CORE, OLMES))
    """Suites of which no model has a task are left out."""
    title: str = versioned("Models by suites")

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _check, name)


def score_suites(config: ScoreSuitesConfig) -> dict[str, Any]:
    """Score every model by every suite.

    Returns models; suites (suite -> model -> mean) and errors (of these, standard errors); missing (suite -> model ->
    the tasks that it lacks); without_suite (the tasks that no suite has, so that they have no baseline); and page.
    Raises ReportError for no models, a suite with a mistake, and models without a task of a suite.
    """
    _check(config)
    records = read_records(config.models)
    scores = {name: scores_by_task(records[name]) for name in config.models}
    by_suite = {suite.name: {name: score_suite(suite, of) for name, of in scores.items()} for suite in config.suites}
    by_suite = {name: of for name, of in by_suite.items() if any(score.parts for score in of.values())}
    if not by_suite:
        raise ReportError(
            f"The models {', '.join(map(repr, config.models))} have no task of a suite, expected tasks of "
            f"{' or '.join(suite.name for suite in config.suites)} at their shots. Evaluate the models on one of them."
        )
    members = set().union(*(members_of_groups(record) for record in records.values()))
    left_out = [task for task in tasks_without_suite(config.suites, scores) if task not in members]
    write_bytes(join(config.output_path, PAGE), suites_page(config.title, by_suite, left_out))
    rows = [row for of in by_suite.values() for model, score in of.items() for row in rows_of(model, score)]
    write_bytes(join(config.output_path, ROWS), "".join(json.dumps(row) + "\n" for row in rows).encode())
    complete = {name: {m: s for m, s in of.items() if s.value is not None} for name, of in by_suite.items()}
    return {
        "models": len(config.models),
        "suites": {name: {m: s.value for m, s in of.items()} for name, of in complete.items() if of},
        "errors": {name: {m: s.error for m, s in of.items()} for name, of in complete.items() if of},
        "missing": {
            name: {model: list(map(str, score.missing)) for model, score in of.items() if score.missing}
            for name, of in by_suite.items()
            if any(score.missing for score in of.values())
        },
        "without_suite": left_out,
        "page": PAGE,
    }


def tasks_without_suite(suites: Sequence[Suite], scores: Mapping[str, TaskScores]) -> list[str]:
    """The labels of the evaluated tasks that no suite has at that number of shots."""
    forms = {(form.task, form.shots) for suite in suites for part in suite.parts for form in part.forms}
    labels = {label: key in forms for of in scores.values() for key, (label, _) in of.items()}
    return sorted(label for label, has_suite in labels.items() if not has_suite)


def suites_page(title: str, by_suite: Mapping[str, Mapping[str, SuiteScore]], left_out: Sequence[str]) -> bytes:
    sections = [suite_section(of) for of in by_suite.values()]
    notes = [
        f"{escape(suite)} has no mean of {escape(model)}: {escape(lacking(score))}."
        for suite, of in by_suite.items()
        for model, score in of.items()
        if score.missing
    ]
    if left_out:
        notes.append(f"Left out, as no suite has them and so no baseline: {escape(', '.join(left_out))}.")
    about = "".join(f'<p class="muted">{note}</p>' for note in notes)
    head = f"{HEAD.format(title=escape(title))}<h1>{escape(title)}</h1>"
    return f"{head}{about}{''.join(sections)}</body></html>\n".encode()


def _check(config: ScoreSuitesConfig) -> None:
    if not config.models:
        raise ReportError("Scores of suites have no models, expected one at least. Pass models={…}.")
    names = [suite.name for suite in config.suites]
    if not names or len(set(names)) < len(names):
        raise ReportError(f"Scores of suites have the suites {names}, expected one at least, and each once.")
    for suite in config.suites:
        check_suite(suite)
