"""Format numbers for readers, each tagged with its step and its place in the step's record.

`check_numbers` parses a finished page and compares its numbers with the records: the attribute with the exact value,
and the text, which must equal that value to the last digit shown.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser

from marin_assets.stages.report.records import StepRecord

ALL = "*"
"""Stands for the sum over all steps."""
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "s": 1, "min": 60, "h": 3600}
SHOWN = re.compile(r"(-?[\d,]+)(?:\.(\d+))?(?:e([+-]\d+))?(?: (\w+))?")


def lookup(records: Mapping[str, StepRecord], step: str, metric: str) -> float | int | None:
    """Return the number at `metric` ("result.acc") in one step's record, or the sum over all records.

    Returns None if no record has it.
    """
    values = [records[label].value(metric) for label in (records if step == ALL else [step]) if label in records]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(numbers) if numbers else None


def tagged(
    records: Mapping[str, StepRecord], step: str, metric: str, *, tag: str = "data", attributes: str = ""
) -> str:
    """Return an element that shows the number, or "not recorded"."""
    value = lookup(records, step, metric)
    if value is None:
        return f'<{tag} class="none" {attributes}>not recorded</{tag}>'
    place = f'data-step="{escape(step)}" data-metric="{escape(metric)}" data-value="{json.dumps(value)}"'
    return f"<{tag} {place} {attributes}>{format_number(value, metric)}</{tag}>"


def format_number(value: float | int, metric: str) -> str:
    """Return "5.54 MB", "37.2 s", "3,103", "0.745": the metric's name gives the unit; floats have about four digits."""
    name = metric.rpartition(".")[2]
    if name == "bytes" or name.endswith("_bytes"):
        return scaled(value, ("B", "kB", "MB", "GB", "TB"), minimum=1)
    if name.endswith("_s"):
        return scaled(value, ("s", "min", "h"), minimum=2)
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = max(0, 4 - len(str(int(abs(value)))) if abs(value) >= 1 else 4)
        return f"{value:,.{digits}f}"
    return f"{value:.3e}"


def scaled(value: float, units: tuple[str, ...], minimum: float) -> str:
    """Return the value in the largest unit in which it is at least `minimum`."""
    unit = next((unit for unit in reversed(units) if abs(value) >= minimum * UNITS[unit]), units[0])
    size = value / UNITS[unit] if abs(value) < 1e300 else math.inf  # a whole number in JSON has any size
    return (
        f"{value:,} {unit}"
        if isinstance(value, int) and UNITS[unit] == 1
        else f"{size:,.{2 if size < 10 else 1}f} {unit}"
    )


def parse_number(text: str) -> tuple[float, float]:
    """Return the number that a text shows, and half a unit of its last digit. Raises ValueError for other text."""
    match = SHOWN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} does not show a number.")
    whole, digits, exponent, unit = match.groups()
    scale = UNITS.get(unit or "B", float("nan")) * 10.0 ** int(exponent or 0)
    return float(f"{whole.replace(',', '')}.{digits or 0}") * scale, 0.5 * 10.0 ** -len(digits or "") * scale


def shown_numbers(html: str) -> list[tuple[str, str]]:
    """The exact value and the shown text of each tagged number of a page."""
    page = TaggedNumbers()
    page.feed(html)
    page.close()
    return [(exact, text) for _, _, exact, text in page.found]


def check_numbers(html: str, records: Mapping[str, StepRecord]) -> tuple[int, list[str]]:
    """Return how many numbers the page shows, and a sentence for each that differs from the records."""
    page = TaggedNumbers()
    page.feed(html)
    page.close()
    wrong = []
    for step, metric, exact, text in page.found:
        value = lookup(records, step, metric)
        if value is None or exact != json.dumps(value) or not is_shown_by(text, value):
            wrong.append(f"{step} {metric} shows {text!r} (exactly {exact}); the record has {value!r}")
    return len(page.found), wrong


def is_shown_by(text: str, value: float) -> bool:
    try:
        number, tolerance = parse_number(text)
    except ValueError:
        return False
    return abs(number - value) <= tolerance * (1 + 1e-6) + 4 * math.ulp(value)


class TaggedNumbers(HTMLParser):
    """Collect (step, metric, exact value, shown text) of every tagged element."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []
        self._open: tuple[str, str, str, str] | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if "data-metric" in values:
            self._open = (
                tag,
                values.get("data-step") or "",
                values["data-metric"] or "",
                values.get("data-value") or "",
            )
            self._text = ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag == self._open[0]:
            self.found.append((*self._open[1:], self._text))
            self._open = None
