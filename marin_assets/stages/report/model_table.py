"""The page of models by tasks: one table, HTML and CSS alone.

Tasks are rows and models columns, so that 50 tasks by 20 models stay readable: the first column and the head stay where
they are, values have three digits, errors are small. A cell is coloured where it differs from the baseline by more than
noise; the best of a row is bold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LOWER_IS_BETTER = ("bits_per_byte", "perplexity", "loss")
"""Parts of the names of metrics."""

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 24px; color: #222 }}
table {{ border-collapse: separate; border-spacing: 0 }}
th, td {{ padding: 4px 10px; text-align: right; white-space: nowrap; background: #fff }}
td, tbody th {{ border-bottom: 1px solid #e3e3e3 }}
thead th {{ position: sticky; top: 0; vertical-align: bottom; border-bottom: 2px solid #999; z-index: 1 }}
th.task {{ position: sticky; left: 0; text-align: left; font-weight: normal; z-index: 1 }}
thead th.task {{ z-index: 2 }} thead span {{ writing-mode: vertical-rl; transform: rotate(180deg); max-height: 220px;
 overflow-wrap: anywhere; white-space: normal; text-align: left }}
small {{ color: #777 }} td.better {{ background: #d5f0da }} td.worse {{ background: #fbd9d6 }}
tr.mean td, tr.mean th {{ border-bottom: 2px solid #999 }} .muted {{ color: #666; max-width: 60em }}
tbody tr:hover td, tbody tr:hover th {{ box-shadow: inset 0 -2px #888 }}
</style></head><body>
"""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model at one task."""

    value: float
    error: float | None = None
    difference: float | None = None
    """From the baseline."""
    noise: float | None = None
    """The standard error of the difference."""
    decision: str = ""
    """"better" or "worse" than the baseline by more than noise."""


def is_lower_better(metric: str) -> bool:
    return any(part in metric for part in LOWER_IS_BETTER)


def table_page(
    title: str,
    baseline: str,
    models: Sequence[str],
    metrics: Mapping[str, str],
    cells: Mapping[str, Mapping[str, Cell]],
    macro: Mapping[str, float],
) -> bytes:
    """Return the page. `metrics` and `cells` by task; `macro` is the mean over the tasks that all models have."""
    compared = sum(cell.difference is not None for row in cells.values() for cell in row.values())
    marked = sum(bool(cell.decision) for row in cells.values() for cell in row.values())
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in models)
    rows = [_mean(models, macro), *(_row(task, metrics[task], models, cells[task]) for task in cells)]
    return "".join(
        [
            HEAD.format(title=escape(title)),
            f"<h1>{escape(title)}</h1>",
            f'<p class="muted">Baseline: {escape(baseline)}. Green is better than it, red is worse, by more than noise '
            f"(the 95% confidence interval of the difference is on one side of 0): {marked} of {compared} differences. "
            f"About {0.05 * compared:.0f} would be marked if no model differed from it. ± is half of a score's own 95% "
            "confidence interval. A cell's title has the difference.</p>",
            f'<table><thead><tr><th class="task">task, metric</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>',
            "</table></body></html>\n",
        ]
    ).encode()


def _mean(models: Sequence[str], macro: Mapping[str, float]) -> str:
    values = "".join(f"<td>{macro[name]:.3f}</td>" for name in models)
    return f'<tr class="mean"><th class="task">mean of the tasks of all models</th>{values}</tr>'


def _row(task: str, metric: str, models: Sequence[str], row: Mapping[str, Cell]) -> str:
    best = (min if is_lower_better(metric) else max)(cell.value for cell in row.values())
    cells = "".join(_cell(row.get(name), best) for name in models)
    return f'<tr><th class="task">{escape(task)} <small>{escape(metric)}</small></th>{cells}</tr>'


def _cell(cell: Cell | None, best: float) -> str:
    if cell is None:
        return '<td title="not evaluated">–</td>'
    value = f"<b>{cell.value:.3f}</b>" if cell.value == best else f"{cell.value:.3f}"
    error = "" if cell.error is None else f" <small>±{1.96 * cell.error:.3f}</small>"
    kind = f" class={cell.decision}" if cell.decision else ""
    return f"<td{kind}{_title(cell)}>{value}{error}</td>"


def _title(cell: Cell) -> str:
    if cell.difference is None:
        return ""
    noise = "" if cell.noise is None else f" ± {1.96 * cell.noise:.4f}"
    return f' title="{cell.difference:+.4f}{noise} from the baseline"'
