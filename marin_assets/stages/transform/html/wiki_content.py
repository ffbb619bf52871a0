"""The fields of the content of a wiki's pages, which `wiki_html` extracts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("parsoid-1",)
INFOBOXES = ("end", "keep", "drop")
CUT = ("reference", "navigation", "notice", "hatnote", "edit", "hidden", "section", "infobox", "formula_image")
"""Reasons to cut an element."""
COUNTS = ("cut_characters", *(f"cut_{reason}" for reason in CUT), "infoboxes", "without_section_names")
REASONS = ("mostly_digits", "too_few_words", "mostly_specials")
"""Reasons to reject a text."""
DROPPED_SECTIONS: dict[str, tuple[str, ...]] = {
    "en": ("References", "External links", "Further reading", "See also", "Notes", "Footnotes", "Citations", "Sources",
           "Bibliography", "Notes and references"),
    "de": ("Einzelnachweise", "Weblinks", "Literatur", "Siehe auch", "Anmerkungen"),
    "fr": ("Notes et références", "Références", "Liens externes", "Voir aussi", "Bibliographie", "Articles connexes"),
    "es": ("Referencias", "Enlaces externos", "Véase también", "Bibliografía", "Notas"),
    "it": ("Note", "Collegamenti esterni", "Voci correlate", "Bibliografia", "Altri progetti"),
    "pt": ("Referências", "Ligações externas", "Ver também", "Bibliografia", "Notas"),
    "nl": ("Externe links", "Externe link", "Zie ook", "Bronnen", "Literatuur"),
    "pl": ("Przypisy", "Linki zewnętrzne", "Zobacz też", "Bibliografia", "Uwagi"),
    "ru": ("Примечания", "Ссылки", "Литература", "См. также"),
    "ja": ("脚注", "外部リンク", "関連項目", "参考文献", "出典"),
    "zh": ("参考文献", "參考文獻", "外部链接", "外部連結", "参见", "參見", "注释", "註釋"),
}  # fmt: skip


class WikiContentError(MarinError, ValueError):
    """Fields of WikiContent that do not go together: one sentence."""


@dataclass(frozen=True, kw_only=True)
class WikiContent:
    """Keep the content of a wiki's pages, whose HTML is Parsoid's."""

    extractor: str = versioned("parsoid-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    keep_title: bool = versioned(True)
    """Whether metadata["title"] becomes the heading of the text. The HTML has none."""
    infobox: str = versioned("end")
    """Place of infoboxes: "end", as tables after the text, "keep", where they are, or "drop"."""
    drop_sections: dict[str, tuple[str, ...]] = field(default_factory=lambda: versioned(dict(DROPPED_SECTIONS)))
    """Language, as metadata["language"] has it -> headings of sections to drop with their subsections, in any case of
    letters. Pages of a language that is not in it keep all sections, and are counted."""
    max_digit_fraction: float = versioned(0.5)
    """Largest share of digits among the characters of a text, without blanks. Above it the page is mostly_digits."""
    min_words: int = versioned(70)
    """A text of fewer words is rejected as too_few_words. Of scripts without blanks each letter is a word."""
    max_special_fraction: float = versioned(0.5)
    """Largest share of characters that are neither letters nor digits. Above it the page is mostly_specials."""


class WikiBounds(Protocol):
    """The fields of a content by which a text is rejected, and its title kept."""

    @property
    def keep_title(self) -> bool: ...

    @property
    def max_digit_fraction(self) -> float: ...

    @property
    def min_words(self) -> int: ...

    @property
    def max_special_fraction(self) -> float: ...


def check_wiki_content(fields: WikiContent) -> None:
    """Raise WikiContentError for an unknown extractor or place of infoboxes, and for a bound that is no share."""
    for name, expected in (("extractor", EXTRACTORS), ("infobox", INFOBOXES)):
        if getattr(fields, name) not in expected:
            value = getattr(fields, name)
            raise WikiContentError(f"wiki.{name} is {value!r}, {expected_one_of(value, expected)}")
    check_wiki_bounds(fields, "wiki")


def check_wiki_bounds(fields: WikiBounds, of: str) -> None:
    """Raise WikiContentError for a bound that is no share; `of` is the name of the field that has `fields`."""
    for name in ("max_digit_fraction", "max_special_fraction"):
        if not 0 <= getattr(fields, name) <= 1:
            raise WikiContentError(f"{of}.{name} is {getattr(fields, name)!r}, expected a fraction from 0 to 1.")
