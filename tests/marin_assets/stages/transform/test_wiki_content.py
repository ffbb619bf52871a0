"""Pages of a wiki, in Parsoid's HTML, as Markdown: content alone, infoboxes at the end, reasons that add up."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of, reasons
from wiki_dumps import html_of

from marin_assets.documents import Document, write_documents
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.wiki_content import CUT, WikiContent, WikiContentError
from marin_assets.stages.transform.html.wiki_html import reject_text, wiki_page, words_of
from marin_assets.stages.transform.html_to_markdown import ExtractorError, HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import unwrap_versioned_value, versioned

PROSE = "<p>" + "Owls hunt at night and sleep by day in hollow trees near the river. " * 6 + "</p>"
MATH = (
    '<span class="mwe-math-element"><span class="mwe-math-mathml-inline mwe-math-mathml-a11y" style="display: none;">'
    '<math xmlns="http://www.w3.org/1998/Math/MathML" alttext="{\\displaystyle E=mc^{2}}"><semantics><mi>E</mi>'
    '<annotation encoding="application/x-tex">{\\displaystyle E=mc^{2}}</annotation></semantics></math></span>'
    '<img src="x.svg" class="mwe-math-fallback-image-inline" alt="{\\displaystyle E=mc^{2}}"/></span>'
)
BODY = (
    '<section data-mw-section-id="0" id="mwAQ">'
    '<div role="note" class="hatnote navigation-not-searchable" id="mwAg">For the bird of prey, see Hawk.</div>'
    '<style data-mw-deduplicate="TemplateStyles:r1">.infobox{width:22em}</style>'
    '<table class="infobox biota" about="#mwt1"><tbody>'
    "<tr><th>Class</th><td>Aves"
    '<sup class="mw-ref reference"><a href="#cite_note-1"><span class="mw-reflink-text">[1]</span></a></sup></td></tr>'
    "<tr><th>Order</th><td>Strigiformes</td></tr></tbody></table>"
    '<table class="box-Unreferenced plainlinks metadata ambox"><tbody><tr><td>needs citations</td></tr></tbody></table>'
    f'<p id="mwBA">An <b>owl</b> is a bird, {MATH} is a formula.'
    '<sup about="#mwt2" class="mw-ref reference" id="cite_ref-1"><a href="#cite_note-1">[1]</a></sup>'
    '<sup class="noprint Inline-Template">[<i>citation needed</i>]</sup>'
    '<span style="display:none">sort key</span></p>' + PROSE + "</section>"
    '<section data-mw-section-id="1"><h2 id="Anatomy">Anatomy<span class="mw-editsection">[edit]</span></h2>'
    + PROSE
    + '<section data-mw-section-id="2"><h3 id="Eyes">Eyes</h3><p>They do not move.</p>'
    '<link rel="mw:PageProp/Category" href="./Category:Birds_of_prey#Owl" id="mwQw"/></section></section>'
    '<section data-mw-section-id="3"><div class="mw-heading mw-heading2"><h2 id="See_also">See <i>Also</i></h2></div>'
    '<ul><li>Hawk</li></ul><section data-mw-section-id="4"><h3 id="Lists">Lists</h3><p>Of owls</p></section></section>'
    '<section data-mw-section-id="5"><h2 id="Fossils">Fossils</h2><p>Many owls are extinct.</p>'
    '<div class="mw-references-wrap"><ol class="mw-references references"><li>Smith 1999</li></ol></div></section>'
    '<section data-mw-section-id="6"><h2 id="References">References</h2><div class="reflist">Smith</div></section>'
    '<div class="navbox-styles"><style>x</style></div><div role="navigation" class="navbox">v t e Birds</div>'
)


def page_of(body: str = BODY, **metadata: Any) -> Document:
    metadata = {"title": "Owl", "language": "en", "categories": ["Owls"], **metadata}
    return Document(id="enwiki/1", text=html_of(body), source="wiki", metadata=metadata)


def convert(
    folder: Path, *pages: Document, wiki: WikiContent | None = None, **fields: Any
) -> tuple[dict[str, Any], list[Document]]:
    write_documents(str(folder / "pages/part-00000-of-00001.jsonl.zst"), pages)
    config = HtmlToMarkdownConfig(
        pages_path=str(folder / "pages"), output_path=str(folder / "text"), wiki=wiki or WikiContent(), **fields
    )
    counts = html_to_markdown(unwrap_versioned_value(config))
    assert counts["pages"] == counts["pages_kept"] + counts["rejected"]
    assert counts["rejected"] == sum(reasons(counts).values())
    return counts, documents_of(folder / "text")


def fields(**values: Any) -> WikiContent:
    return unwrap_versioned_value(WikiContent(**values))


def cut(body: str, language: str = "en", **values: Any) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    page = wiki_page(page_of(body, language=language), fields(**values), counts)
    text = page.text.partition('dir="ltr">')[2].replace("</body></html>", "")
    return text, {name: counts[f"cut_{name}"] for name in CUT if counts[f"cut_{name}"]}


def test_an_article_becomes_its_text_with_the_infobox_at_the_end(tmp_path: Path) -> None:
    counts, (document,) = convert(tmp_path, page_of())
    sentences = PROSE.removeprefix("<p>").removesuffix(" </p>")
    assert document.text.split("\n\n") == [
        "# Owl",
        "An owl is a bird, $E=mc^{2}$ is a formula.",
        sentences,
        "## Anatomy",
        sentences,
        "### Eyes",
        "They do not move.",
        "## Fossils",
        "Many owls are extinct.",
        "|  |  |\n| --- | --- |\n| Class | Aves |\n| Order | Strigiformes |",
    ]
    assert document.metadata["categories"] == ["Owls", "Birds of prey"]
    expected = {"reference": 3, "navigation": 2, "notice": 2, "hatnote": 1, "edit": 1, "hidden": 1, "section": 2,
                "formula_image": 1}  # fmt: skip
    assert {name: counts[f"cut_{name}"] for name in CUT} == {**expected, "infobox": 0}
    assert counts["infoboxes"] == 1
    assert counts["without_section_names"] == 0
    assert counts["cut_characters"] > 80


def test_pages_without_the_field_are_as_before_and_have_the_same_version(tmp_path: Path) -> None:
    config = HtmlToMarkdownConfig(pages_path="pages", wiki=None)
    steps = [Step(name="a", fn=html_to_markdown, config=config)]
    steps += [Step(name="a", fn=html_to_markdown, config=HtmlToMarkdownConfig(pages_path="pages"))]
    steps += [Step(name="a", fn=html_to_markdown, config=HtmlToMarkdownConfig(pages_path="pages", wiki=WikiContent()))]
    steps += [
        Step(
            name="a",
            fn=html_to_markdown,
            config=HtmlToMarkdownConfig(pages_path="pages", wiki=WikiContent(min_words=versioned(3))),
        )
    ]
    versions = [build_graph([step])[step].version.hash for step in steps]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


@pytest.mark.parametrize(
    ("infobox", "order"), [("end", ["before", "after", "A"]), ("keep", ["before", "A", "after"]), ("drop", None)]
)
def test_the_place_of_infoboxes_is_a_field(infobox: str, order: list[str] | None) -> None:
    inner = '<table class="infobox"><tr><td>in</td></tr></table>'
    box = f'<table class="infobox"><tr><th>A</th><td>1{inner}</td></tr></table>'
    text, counts = cut(f"<p>before</p>{box}<p>after</p>", infobox=infobox)
    if order is None:
        assert text == "<p>before</p><p>after</p>"
        assert counts == {"infobox": 1}
        return
    assert sorted(order, key=text.index) == order
    assert text.count("</table>") == 2
    assert counts == {}


def test_sections_are_dropped_by_the_language_of_the_page() -> None:
    body = '<section data-mw-section-id="1"><h2 id="x">Einzelnachweise</h2><p>Schmidt</p></section>'
    assert cut(body, "de") == ("", {"section": 1})
    assert cut(body, "en") == (body, {})
    assert cut(body, "tlh", drop_sections={"tlh": ("EINZELNACHWEISE",)}) == ("", {"section": 1})
    counts: Counter[str] = Counter()
    wiki_page(page_of(body, language="tlh"), fields(), counts)
    assert counts["without_section_names"] == 1


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('<p>a<sup class="reference">[1]</p><p>b</p>', "<p>a</p><p>b</p>"),
        ('<p>a</p><div class="navbox"><p>b', "<p>a</p>"),
        ("<p>a</b></p></div>", "<p>a</b></p></div>"),
        ('<p data-mw=\'{"a":">"}\' class="x">a</p>', '<p data-mw=\'{"a":">"}\' class="x">a</p>'),
        ('<p>a<br class="noprint"/>b</p>', '<p>a<br class="noprint"/>b</p>'),
        ('<!-- <div class="navbox"> --><p>a</p>', "<p>a</p>"),
        ('<ul class="references"><li>a<li>b</ul><p>c', "<p>c"),
        ("<P CLASS='navbox'>a</P>b", "b"),
        ('<p>a < b <a "', '<p>a < b <a "'),
    ],
)
def test_html_that_is_not_whole_loses_nothing_else(body: str, text: str) -> None:
    assert cut(body)[0] == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("word " * 70, None),
        ("word " * 69, "too_few_words"),
        ("1950 " * 50 + "word " * 49, "mostly_digits"),
        ("1950 " * 50 + "word " * 50, None),
        ("|--| " * 50 + "word " * 49, "mostly_specials"),
        ("|--| " * 50 + "word " * 50, None),
        ("鳥" * 70, None),
        ("", "too_few_words"),
    ],
)
def test_a_text_is_rejected_beyond_each_bound(text: str, reason: str | None) -> None:
    assert reject_text(text, fields()) == reason


def test_words_of_scripts_without_blanks_are_letters() -> None:
    assert words_of("the owl フクロウ です") == 8


def test_each_bound_is_a_reason_of_its_own(tmp_path: Path) -> None:
    rows = "<p>" + "1950 1951 " * 60 + "</p>"
    bodies = [BODY, "<p>" + "An owl is a bird. " * 8 + "</p>", rows, "<p>" + "+-+ " * 80 + "</p>", "", "<p>x</p>"]
    counts, documents = convert(tmp_path, *(page_of(body) for body in bodies))
    assert reasons(counts) == {
        "too_few_words": 1, "mostly_digits": 1, "mostly_specials": 1, "empty": 1, "too_short": 1,
    }  # fmt: skip
    assert len(documents) == 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"infobox": "ends"}, "wiki.infobox is 'ends', expected"),
        ({"extractor": "parsoid-2"}, "wiki.extractor is 'parsoid-2', expected"),
        ({"max_digit_fraction": 50}, "wiki.max_digit_fraction is 50, expected a fraction"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WikiContentError, match=sentence):
        convert(tmp_path, page_of(), wiki=WikiContent(**values))
    with pytest.raises(ExtractorError, match="main_content and wiki are both given"):
        convert(tmp_path / "both", page_of(), main_content=MainContent())


@pytest.mark.parametrize(
    "body",
    [
        "<div>",
        '<table class="infobox"><tr><td>',
        '<section data-mw-section-id="1"><h2>X',
        '<div class="navbox">',
        '<sup class="reference">[1]</sup>',
        '<a "',
        "</p><b></i>",
        '<span style="display:',
        '<link rel="mw:PageProp/Category" href="./Category:A">',
    ],
)
@pytest.mark.long
def test_hostile_pages_take_linear_time(body: str) -> None:
    def cpu_s(copies: int) -> float:
        began_s = time.process_time()
        wiki_page(page_of(body * copies), fields(), Counter())
        return time.process_time() - began_s

    small = min(cpu_s(10_000) for _ in range(3))
    assert cpu_s(100_000) < 30 * max(small, 0.01)
