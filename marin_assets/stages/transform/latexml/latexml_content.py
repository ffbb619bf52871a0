"""The fields of the content of papers whose HTML LaTeXML has written, which `latexml_html` extracts."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("latexml-1",)
PARTS = ("authors", "bibliography", "footnotes", "captions", "footer")
"""Parts that can be dropped. Marin drops all of them."""
BEFORE = ("keep", "drop")
CUT = (*PARTS, "before_section", "citations", "contents", "numbers", "errors", "images", "pictures", "repeated")
"""Reasons to cut an element: its part; or what is before the first section; numbers of citations, of which the list is
dropped; the table of contents; marks of items, numbers of equations and of lines, which the text has otherwise or not
at all; names of macros that LaTeXML does not know; images; drawings; the same caption again."""
COUNTS = ("cut_characters", *(f"cut_{reason}" for reason in CUT), "formulas", "displays")
REASONS = ("not_latexml",)
"""Reason to reject a page: LaTeXML has not written it."""


class LatexmlContentError(MarinError, ValueError):
    """Fields of LatexmlContent that have no meaning: one sentence."""


@dataclass(frozen=True, kw_only=True)
class LatexmlContent:
    """Keep the content of papers, whose HTML is LaTeXML's, as that of ar5iv and arXiv."""

    extractor: str = versioned("latexml-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    drop: tuple[str, ...] = versioned(PARTS)
    """Parts that the text does not have: "authors" with their addresses, thanks, dates and title pages;
    "bibliography" with the numbers in brackets that cite it; "footnotes"; "captions" of figures and tables; "footer",
    the lines of LaTeXML and ar5iv below a page. All of them by default, as in Marin; () keeps all."""
    before_first_section: str = versioned("keep")
    """The place before the first section: "keep" has title and abstract in the text; "drop" leaves all of it out, as
    Marin does."""


def check_latexml_content(fields: LatexmlContent) -> None:
    """Raise LatexmlContentError for an unknown extractor, part or place."""
    for name, expected in (("extractor", EXTRACTORS), ("before_first_section", BEFORE)):
        if getattr(fields, name) not in expected:
            value = getattr(fields, name)
            raise LatexmlContentError(f"latexml.{name} is {value!r}, {expected_one_of(value, expected)}")
    if isinstance(fields.drop, str):
        raise LatexmlContentError(f"latexml.drop is {fields.drop!r}, expected a tuple: ({fields.drop!r},).")
    for part in fields.drop:
        if part not in PARTS:
            raise LatexmlContentError(f"latexml.drop has {part!r}, {expected_one_of(part, PARTS)}")
