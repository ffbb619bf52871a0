"""The page of a table of models by tasks.

Tasks are rows and models columns, so that 50 tasks by 20 models stay readable: the first column and the head stay where
they are, values have three digits, errors are small. A cell is coloured where it differs from the baseline by more than
noise; the best of a row is bold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from marin_assets.stages.report.models_by_tasks.cells import Cell
from marin_assets.stages.report.models_by_tasks.contamination import NOBODY_LOOKED, ModelContamination
from marin_assets.stages.report.models_by_tasks.head import HEAD
from marin_assets.stages.report.models_by_tasks.significance import ALPHA, Z95
from marin_assets.stages.report.models_by_tasks.suites.scores import SuiteScore
from marin_assets.stages.report.models_by_tasks.suites.section import suite_section
from marin_assets.stages.report.views import about_views, linked, title_with

POINT = 0.01
"""The difference for which the page has a number of questions."""
NOT_EVALUATED = '<td title="not evaluated">–</td>'


def table_page(
    title: str,
    baseline: str,
    models: Sequence[str],
    metrics: Mapping[str, str],
    lower: Mapping[str, bool],
    cells: Mapping[str, Mapping[str, Cell]],
    macro: Mapping[str, float],
    averaged: Sequence[str],
    contamination: Mapping[str, ModelContamination],
    suites: Sequence[Mapping[str, SuiteScore]],
) -> bytes:
    """Return the page. `metrics`, `lower` and `cells` by task; `macro` is the mean over the tasks in `averaged`;
    `contamination` by model; `suites` has the scores of each suite by model."""
    every = [cell for row in cells.values() for cell in row.values()]
    compared, marked = sum(cell.tested is not None for cell in every), sum(bool(cell.outcome) for cell in every)
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in models)
    rows = [_row(task, metrics[task], models, cells[task], lower[task]) for task in cells]
    return "".join(
        [
            HEAD.format(title=escape(title)),
            f"<h1>{escape(title)}</h1>",
            f'<p class="muted">Baseline: {escape(baseline)}. Green is better than it, red is worse, by more than '
            f"noise: {marked} of {compared} differences, of which {ALPHA:.0%} at most are expected to be noise. If no "
            f"model differed from it, a page like this would mark any with a probability of {ALPHA:.0%}: the p-values "
            f"are corrected for all {compared} differences (Benjamini and Hochberg). ± is half of a score's own 95% "
            "confidence interval. A cell's title has the difference with its interval, and the p-values."
            f"{about_views([cell.view for cell in every])}</p>",
            f'<table><thead><tr><th class="task">task, metric</th>{head}</tr></thead>',
            f"<tbody>{_mean(models, macro, len(averaged))}{''.join(rows)}</tbody></table>",
            *map(suite_section, suites),
            _training(models, cells, contamination),
            _power(metrics, cells),
            "</body></html>\n",
        ]
    ).encode()


def _mean(models: Sequence[str], macro: Mapping[str, float], tasks: int) -> str:
    if not macro:
        return ""
    values = "".join(f"<td>{macro[name]:.3f}</td>" for name in models)
    about = "all models have them, from 0 to 1, more is better; a group counts once"
    return f'<tr class="mean"><th class="task" title="{about}">mean of {tasks} tasks</th>{values}</tr>'


def _row(task: str, metric: str, models: Sequence[str], row: Mapping[str, Cell], lower: bool) -> str:
    best = (min if lower else max)(cell.value for cell in row.values())
    cells = "".join(_cell(row.get(name), best) for name in models)
    arrow = " ↓" if lower else ""
    return f'<tr><th class="task">{escape(task)} <small>{escape(metric)}{arrow}</small></th>{cells}</tr>'


def _training(
    models: Sequence[str], cells: Mapping[str, Mapping[str, Cell]], contamination: Mapping[str, ModelContamination]
) -> str:
    """A table of the questions of each task that the training data of each model hold; a sentence without any."""
    head = '<h2>Questions in the training data</h2><p class="muted">'
    if not any(of.tasks for of in contamination.values()):
        reasons = dict.fromkeys(of.missing for of in contamination.values())
        named = {reason: [name for name in models if contamination[name].missing == reason] for reason in reasons}
        lines = "; ".join(f"{', '.join(map(escape, of))}: {reason}" for reason, of in named.items())
        return f"{head}{lines}. A comparison has the counts of its <code>contaminations</code>.</p>"
    parts = "".join(
        f" {escape(name)} was trained on more, which was not searched: {escape('; '.join(of.not_searched))}."
        for name, of in contamination.items()
        if of.not_searched
    )
    heads = "".join(f"<th><span>{linked(escape(name), contamination[name].link)}</span></th>" for name in models)
    rows = "".join(
        f'<tr><th class="task">{escape(task)}</th>'
        f"{''.join(_count(contamination[name], task) if name in of else NOT_EVALUATED for name in models)}</tr>"
        for task, of in cells.items()
    )
    return (
        f"{head}The questions of each task that the training data of the model hold, of all that it answered.{parts}"
        f'</p><table><thead><tr><th class="task">task</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _count(contamination: ModelContamination, task: str) -> str:
    counts = contamination.tasks.get(task)
    if counts is None:
        return f"<td><small>{NOBODY_LOOKED if contamination.tasks else contamination.missing}</small></td>"
    kind = " class=held" if counts.contaminated else ""
    return f'<td{kind} title="{counts.phrase}">{counts.short}</td>'


def _power(metrics: Mapping[str, str], cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """A table of what the questions of each task can show, by the noisiest of its differences; empty without any."""
    rows = []
    for task, of in cells.items():
        tests = [cell.tested for cell in of.values() if cell.tested is not None and cell.tested.questions is not None]
        if tests:
            noisiest = max(tests, key=lambda tested: tested.error)
            count, passages = noisiest.questions, noisiest.passages
            shown = f"{count:,}" if count == passages else f"{count:,} of {passages:,} passages"
            needed = noisiest.questions_for(POINT)
            rows.append(
                f'<tr><th class="task">{escape(task)} <small>{escape(metrics[task])}</small></th><td>{shown}</td>'
                f"<td>{noisiest.smallest:.3f}</td><td>{'–' if needed is None else f'{needed:,}'}</td></tr>"
            )
    if not rows:
        return ""
    return (
        '<h2>Differences that the questions can show</h2><p class="muted">With a probability of 80%, in a single test '
        "with p = 0.05, by the differences of these models. A real difference that is smaller is seldom seen.</p>"
        '<table><thead><tr><th class="task">task, metric</th><th>questions</th><th>smallest difference</th>'
        f"<th>questions for {POINT}</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(cell: Cell | None, best: float) -> str:
    if cell is None:
        return NOT_EVALUATED
    value = f"<b>{cell.value:.3f}</b>" if cell.value == best else f"{cell.value:.3f}"
    error = "" if cell.error is None else f" <small>±{Z95 * cell.error:.3f}</small>"
    kind = f" class={cell.outcome}" if cell.outcome else ""
    return f"<td{kind}{title_with(_difference(cell), cell.view)}>{linked(value, cell.view)}{error}</td>"


def _difference(cell: Cell) -> str:
    if cell.difference is None:
        return ""
    if cell.tested is None:
        return f"{cell.difference:+.4f} from the baseline, without an error"
    noise, p = f"± {Z95 * cell.tested.error:.4f}", f"p = {cell.tested.p:.2g}, {cell.p_corrected:.2g} corrected"
    return f"{cell.difference:+.4f} {noise} from the baseline, {p}"
