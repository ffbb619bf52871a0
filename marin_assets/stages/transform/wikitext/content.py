"""The fields of the content of a page of wikitext, and the names that wikis have for files and categories."""

from __future__ import annotations

from dataclasses import dataclass, field

from marin_assets.stages.transform.html.wiki_content import DROPPED_SECTIONS, check_wiki_bounds
from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("wikitext-1",)
HIDDEN = ("templates", "tables_dropped", "references", "images", "others")
"""Kinds of content that a text lacks: templates, which MediaWiki would have replaced by their text; tables that hold no
data; references; images; and galleries, scores, time lines and the like."""
COUNTS = (*HIDDEN, "tables", "formulas", "sections_dropped", "without_section_names")
DISAMBIGUATIONS = (
    "disambiguation", "disambig", "disamb", "dab", "hndis", "geodis", "surname", "given name", "begriffsklärung",
    "homonymie", "desambiguación", "desambiguação", "disambigua", "dp", "doorverwijspagina", "ujednoznacznienie",
    "неоднозначность", "многозначност", "пояснение", "aimai", "消歧义", "消歧義", "förgrening", "flertydig",
)  # fmt: skip
FILES = (
    "file", "image", "media", "datei", "bild", "fichier", "archivo", "imagen", "ficheiro", "imagem", "immagine",
    "bestand", "afbeelding", "plik", "grafika", "файл", "изображение", "картинка", "зображення", "слика", "датотека",
    "ファイル", "画像", "文件", "图像", "圖像", "檔案", "파일", "그림", "fil", "tiedosto", "kuva", "soubor", "dosya",
    "resim", "kép", "fájl", "fișier", "imagine", "berkas", "tập tin", "hình", "ملف", "صورة", "پرونده", "קובץ", "תמונה",
    "चित्र", "αρχείο", "εικόνα", "fitxer", "imatge",
)  # fmt: skip
CATEGORIES = (
    "category", "kategorie", "catégorie", "categoría", "categoria", "categorie", "kategoria", "категория", "категорія",
    "категорија", "カテゴリ", "分类", "分類", "분류", "kategori", "luokka", "kategória", "thể loại", "تصنيف", "رده",
    "קטגוריה", "श्रेणी", "κατηγορία", "kategorija",
)  # fmt: skip


class WikitextContentError(MarinError, ValueError):
    """Fields of WikitextContent that do not go together: one sentence."""


@dataclass(frozen=True, kw_only=True)
class WikitextContent:
    """Keep the content of pages of wikitext."""

    extractor: str = versioned("wikitext-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    keep_title: bool = versioned(True)
    """Whether metadata["title"] becomes the heading of the text."""
    keep_tables: bool = versioned(True)
    """Whether tables of data become tables of Markdown. Those that arrange a page are dropped either way."""
    drop_sections: dict[str, tuple[str, ...]] = field(default_factory=lambda: versioned(dict(DROPPED_SECTIONS)))
    """Language, as metadata["language"] has it -> headings of sections to drop with their subsections, as in
    WikiContent."""
    disambiguations: tuple[str, ...] = versioned(DISAMBIGUATIONS)
    """Templates of pages that list the meanings of a title, in any case of letters."""
    max_digit_fraction: float = versioned(0.5)
    """Largest share of digits among the characters of a text, without blanks. Above it the page is mostly_digits."""
    min_words: int = versioned(70)
    """A text of fewer words is rejected as too_few_words. Of scripts without blanks each letter is a word."""
    max_special_fraction: float = versioned(0.5)
    """Largest share of characters that are neither letters nor digits. Above it the page is mostly_specials."""


def check_wikitext_content(fields: WikitextContent) -> None:
    """Raise WikitextContentError for unknown rules, and WikiContentError for a bound that is no share."""
    if fields.extractor not in EXTRACTORS:
        raise WikitextContentError(
            f"content.extractor is {fields.extractor!r}, {expected_one_of(fields.extractor, EXTRACTORS)}"
        )
    check_wiki_bounds(fields, "content")
