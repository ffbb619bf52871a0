"""The fields of formulas, and the counts of their forms."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

RULES = ("formulas-2", "formulas-1")
"""The second takes delimiters as the page declares them, `$$…$$` of MathJax and KaTeX, and AsciiMath."""
FORMS = ("mathml_tex", "mathml", "script", "delimiters", "asciimath", "image", "forum")
OTHERS = ("linear", "unclosed", "rendered")
COUNTS = ("formulas", *(f"formulas_{form}" for form in (*FORMS, *OTHERS)))
"""Formulas with TeX, and these by their form; formulas of MathML and AsciiMath that have no LaTeX, and are linear;
delimiters that nothing closes; elements that were cut as they repeat a formula."""


class FormulasError(MarinError, ValueError):
    """Unknown rules of formulas: one sentence."""


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """Write the formulas of pages as TeX between dollars: `$…$` in a line, `$$…$$` on display."""

    rules: str = versioned("formulas-2")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""


def check_formulas(fields: Formulas) -> None:
    """Raise FormulasError for unknown rules."""
    if fields.rules not in RULES:
        raise FormulasError(f"formulas.rules is {fields.rules!r}, {expected_one_of(fields.rules, RULES)}")
