"""A plan as one HTML page: a coloured DAG, and below it the groups with their reasons. No network, no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from marin_assets.plan.plan import Planned
from marin_assets.plan.record_facts.origins import describe_origin, total_of_origins
from marin_assets.plan.render.groups import Group, groups_of
from marin_assets.plan.render.picture import COLOURS, legend, picture_of
from marin_assets.plan.render.picture import STYLE as STYLE_OF_PICTURE
from marin_assets.plan.render.text import describe_earlier, describe_expected, describe_total, summary_of
from marin_resources.storage.manifest.bytes_progress import readable_bytes

SHOWN_OUTPUTS = 200
"""Outputs of a group in its table."""
SHOWN_FIRST = 8
"""Groups above the picture: a screen of a page has room for these and the top of the picture."""


def page_of(planned: Sequence[Planned], prefix: str, title: str) -> str:
    """The page."""
    groups = groups_of(planned)
    links = {item.node.output: f"#group-{number}" for number, group in enumerate(groups) for item in group.items}
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Plan: {escape(title)}</title><style>{_style()}</style></head><body>",
            f"<h1>Plan: {escape(title)}</h1>",
            f'<p class="sum">{escape(summary_of(planned))}</p><p class="prefix">{escape(prefix)}</p>',
            _first_lines(groups),
            legend(),
            picture_of(planned, links),
            *(_group(number, group) for number, group in enumerate(groups)),
            "</body></html>",
        ]
    )


def _first_lines(groups: Sequence[Group]) -> str:
    """The changes, above the picture: a line for each group, first those whose own fields have changed."""
    order = sorted(enumerate(groups), key=lambda numbered: not _is_root(numbered[1]))
    lines = "".join(
        f'<li><a href="#group-{number}">{group.action} {_names(group)}</a>: {_lines(group.reason)}</li>'
        for number, group in order[:SHOWN_FIRST]
    )
    more = len(groups) - SHOWN_FIRST
    return f"<ul>{lines}{f'<li>and {more:,} more groups, below</li>' if more > 0 else ''}</ul>"


def _is_root(group: Group) -> bool:
    """Whether a step of the group has changed itself."""
    return any(item.why is not None and item.why.own for item in group.items)


def _lines(text: str) -> str:
    """The text, in its lines: a step may lack several things."""
    return "<br>".join(map(escape, text.splitlines()))


def _names(group: Group) -> str:
    first, *others = group.steps
    return f"{escape(first)} and {len(others):,} more steps" if others else escape(first)


def _group(number: int, group: Group) -> str:
    count, size = len(group.items), f", {readable_bytes(group.bytes)}" if group.bytes else ""
    total = describe_total(group.total)
    downloaded = total_of_origins(group.origins).describe()
    rows = "".join(_row(item, group) for item in group.items[:SHOWN_OUTPUTS])
    rest = f"<p>and {count - SHOWN_OUTPUTS:,} more: <code>marin plan --json</code> has all.</p>"
    return (
        f'<section id="group-{number}" class="{group.action}">'
        f"<h2>{group.action} {count:,} output{'s' * (count != 1)}{escape(size)}</h2>"
        f"<p>{_lines(group.reason)}</p>{''.join(f'<p>{escape(text)}</p>' for text in (downloaded, total) if text)}"
        f"<details{' open' if count <= 12 else ''}><summary>outputs</summary><table>{rows}</table>"
        f"{rest if count > SHOWN_OUTPUTS else ''}</details></section>"
    )


def _row(item: Planned, group: Group) -> str:
    """The row of an output, with its reason if the group has several."""
    origin = item.node.step.origin
    notes = ["" if item.reason == group.reason or item.why is None else item.reason]
    notes += ["" if origin is None else describe_origin(origin)]
    notes += [describe_earlier(item), "" if item.expected is None else describe_expected(item.expected)]
    cells = (item.label, item.observed.path, "; ".join(filter(None, notes)))
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _style() -> str:
    return f"{STYLE}{STYLE_OF_PICTURE}" + "".join(
        f".legend .{action},section.{action} h2{{background:{fill};border-left:6px solid {line};padding:2px 8px}}"
        for action, (fill, line) in COLOURS.items()
    )


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1200px; padding: 0 1rem; color: #1a202c }
h1 { font-size: 1.6rem; overflow-wrap: anywhere }
h2 { font-size: 1.05rem; margin: 1.6rem 0 0.5rem }
p { margin: 0.3rem 0; overflow-wrap: anywhere }
.picture { overflow-x: auto; margin: 1rem 0 }
.prefix, code { font-family: ui-monospace, monospace; font-size: 13px }
.sum { font-weight: 600 }
ul { margin: 0.6rem 0; padding-left: 1.2rem }
li { overflow-wrap: anywhere }
table { border-collapse: collapse; font-size: 13px; margin: 0.3rem 0 }
td { padding: 2px 12px 2px 0; vertical-align: top; overflow-wrap: anywhere }
@media (max-width: 700px) {
  tr { display: block; margin-bottom: 0.6rem }
  td { display: block; padding: 0 }
}
"""
