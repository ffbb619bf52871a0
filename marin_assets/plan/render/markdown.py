"""A plan as a table in Markdown: a row for each group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from marin_assets.plan.plan import Action, Planned
from marin_assets.plan.render.groups import Group, groups_of
from marin_assets.plan.render.text import describe_total
from marin_resources.storage.manifest.bytes_progress import readable_bytes

SHOWN_GROUPS = 40
SHOWN_STEPS = 4


def table_of(planned: Iterable[Planned]) -> str:
    """The table; a sentence for an empty plan."""
    groups = groups_of(planned)
    if not groups:
        return "No steps."
    rows = [_row("action", "outputs", "steps", "reason", "expected"), _row(*["---"] * 5)]
    rows += [_row(*_cells(group)) for group in groups[:SHOWN_GROUPS]]
    more = len(groups) - SHOWN_GROUPS
    return "\n".join([*rows, *([f"\nand {more:,} more groups, on the page"] if more > 0 else [])])


def _cells(group: Group) -> Sequence[str]:
    size = f", {readable_bytes(group.bytes)}" if group.bytes else ""
    more = f" and {len(group.steps) - SHOWN_STEPS:,} more" if len(group.steps) > SHOWN_STEPS else ""
    steps = ", ".join(f"`{name}`" for name in group.steps[:SHOWN_STEPS])
    expected = describe_total(group.total) if group.action is Action.RUN else ""
    return f"**{group.action}**", f"{len(group.items):,}{size}", steps + more, _text(group.reason), _text(expected)


def _text(text: str) -> str:
    """The text as it is, with Markdown's characters escaped, and its lines in one cell."""
    shown = escape("\n".join(" ".join(line.split()) for line in text.splitlines()), quote=False)
    escaped = "".join(f"\\{character}" if character in r"\`*_[]|" else character for character in shown)
    return escaped.replace("\n", "<br>")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
