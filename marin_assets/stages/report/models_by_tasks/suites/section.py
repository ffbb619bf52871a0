"""The tables of suites on a page: a row for each part, a column for each model, and the mean in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from marin_assets.stages.report.models_by_tasks.significance import Z95
from marin_assets.stages.report.models_by_tasks.suites.scores import PartScore, SuiteScore
from marin_assets.stages.report.models_by_tasks.suites.suite import Part, Suite

ABOUT_CENTERED = (
    "A score is (accuracy - baseline) / (1 - baseline), where the baseline is the accuracy by chance: 0 is chance, "
    "and 1 is that every answer is right. "
)
ABOUT_FORMS = "The score of a task with several forms is that of its best, which the cell names. "
ABOUT = (
    "The mean exists where all tasks do. ± is half of a 95% confidence interval; that of the mean takes tasks as "
    "independent, but one task at two numbers of shots as fully dependent."
)


def suite_section(scores: Mapping[str, SuiteScore]) -> str:
    """Return the heading and the table of one suite. `scores` by model, at least one."""
    suite = next(iter(scores.values())).suite
    has_forms = any(len(part.forms) > 1 for part in suite.parts)
    about = f"{ABOUT_CENTERED if suite.centered else ''}{ABOUT_FORMS if has_forms else ''}{ABOUT}"
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in scores)
    baseline = "<th>baseline</th>" if suite.centered else ""
    rows = "".join(_row(suite, part, list(scores.values())) for part in suite.parts)
    return (
        f'<h2>{escape(suite.name)}</h2><p class="muted">{about}</p>'
        f'<table><thead><tr><th class="task">task, metric</th>{baseline}{head}</tr></thead>'
        f"<tbody>{_mean(suite, list(scores.values()))}{rows}</tbody></table>"
    )


def _mean(suite: Suite, scores: Sequence[SuiteScore]) -> str:
    cells = "".join(_mean_cell(score) for score in scores)
    kind, blank = ("centered ", "<td></td>") if suite.centered else ("", "")
    title = f"{kind}mean of {len(suite.parts)} tasks"
    return f'<tr class="mean"><th class="task">{title}</th>{blank}{cells}</tr>'


def _mean_cell(score: SuiteScore) -> str:
    if score.value is None:
        return f'<td title="{escape(lacking(score))}">–</td>'
    return f"<td><b>{score.value:.3f}</b>{_half(score.error)}</td>"


def lacking(score: SuiteScore) -> str:
    """The forms that an evaluation lacks, as a phrase."""
    return f"not evaluated: {', '.join(map(str, score.missing))}"


def _row(suite: Suite, part: Part, scores: Sequence[SuiteScore]) -> str:
    metrics = ", ".join(dict.fromkeys(form.metric for form in part.forms))
    baseline = f"<td>{part.baseline:.3g}</td>" if suite.centered else ""
    cells = "".join(_cell(score.parts.get(part.name)) for score in scores)
    return f'<tr><th class="task">{escape(part.name)} <small>{metrics}</small></th>{baseline}{cells}</tr>'


def _cell(score: PartScore | None) -> str:
    if score is None:
        return '<td title="not evaluated">–</td>'
    forms = [f"{form.label} {form.form.metric} {form.accuracy:.4f}{_of(form.questions)}" for form in score.forms]
    best = f" <small>{escape(score.best.form.task)}</small>" if len(score.forms) > 1 else ""
    return f'<td title="{escape("; ".join(forms))}">{score.value:.3f}{_half(score.error)}{best}</td>'


def _of(questions: int | None) -> str:
    return "" if questions is None else f" of {questions:,} questions"


def _half(error: float | None) -> str:
    return "" if error is None else f" <small>±{Z95 * error:.3f}</small>"
