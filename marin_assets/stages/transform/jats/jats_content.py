"""The fields of the content of an article in JATS, which `article` extracts."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("jats-1",)
CITATIONS = ("drop_numbers", "drop", "keep")
CUT = (
    "citation",
    "caption",
    "footnote",
    "reference",
    "back_matter",
    "abstract",
    "supplement",
    "alternative",
    "article",
)
"""Names of elements that are cut: marks of references; captions of figures; footnotes; lists of references;
acknowledgements, appendices and so on; translated and graphical abstracts; supplementary files; texts in place of an
image, object ids and permissions within the text; reviews and responses that are articles of their own."""
COUNTS = ("cut_characters", *(f"cut_{name}" for name in CUT), "formulas", "formula_images", "tables", "table_images")


class JatsContentError(MarinError, ValueError):
    """Fields of JatsContent that have no such value: one sentence."""


@dataclass(frozen=True, kw_only=True)
class JatsContent:
    """Keep the content of articles in JATS."""

    extractor: str = versioned("jats-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    abstract: bool = versioned(True)
    """Whether the abstract stands before the body."""
    citations: str = versioned("drop_numbers")
    """Marks of references in the text: "drop_numbers" cuts those without letters, such as [3,5], as names belong to
    their sentence; "drop" cuts all, "keep" none."""
    captions: bool = versioned(True)
    """Whether captions of figures are kept. Those of tables always are."""
    footnotes: bool = versioned(True)
    """Whether footnotes of the body stand after it. Those of tables are below their table."""
    references: bool = versioned(False)
    """Whether the list of references stands at the end."""
    back_matter: bool = versioned(False)
    """Whether appendices, acknowledgements and notes stand after the body."""
    supplements: bool = versioned(False)
    """Whether descriptions of supplementary files are kept."""


def check_jats_content(fields: JatsContent) -> None:
    """Raise JatsContentError for an unknown extractor or way of citations."""
    for name, expected in (("extractor", EXTRACTORS), ("citations", CITATIONS)):
        if getattr(fields, name) not in expected:
            value = getattr(fields, name)
            raise JatsContentError(f"jats.{name} is {value!r}, {expected_one_of(value, expected)}")
