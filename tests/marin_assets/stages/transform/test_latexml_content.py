"""Papers in LaTeXML's HTML as Markdown: their LaTeX is the truth of every formula, heading, item and word."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import latexml_papers
import pytest
from crawls import documents_of, reasons
from latexml_papers import canonical_text, formulas_in, formulas_of, headings_of, kept, page_of, source_of, words_of

from marin_assets.documents import Document, write_documents
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.html_to_markdown import ExtractorError, HtmlToMarkdownConfig, html_to_markdown
from marin_assets.stages.transform.latexml.latexml_content import CUT, LatexmlContent, LatexmlContentError
from marin_assets.stages.transform.latexml.latexml_html import latexml_page
from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import unwrap_versioned_value, versioned

OF_LATEX = {"Theorem", "Definition", "Lemma", "Proof", "Abstract", "Appendix"}
"""Words that LaTeX adds."""


def markdown(page: str, counts: Counter[str] | None = None, **fields: Any) -> str:
    content = unwrap_versioned_value(LatexmlContent(**fields))
    counted: Counter[str] = Counter() if counts is None else counts
    converted = latexml_page(Document(id="1", text=page), content, counted)
    assert converted is not None
    return resiliparse_markdown(converted.text)


def article(body: str) -> str:
    return f'<!DOCTYPE html><html><body><article class="ltx_document ltx_authors_1line">{body}</article></body></html>'


def text_of(body: str, **fields: Any) -> str:
    return markdown(article(body), **fields)


def math(tex: str, display: str = "inline") -> str:
    tex = tex.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<math id="m" class="ltx_Math" alttext="{tex}" display="{display}"><semantics><mi>x</mi>'
        f'<annotation encoding="application/x-tex">{tex}</annotation></semantics></math>'
    )


def require_truth(page: str, source: str) -> None:
    """Require that the Markdown of a page has what the kept part of its LaTeX has, in its order."""
    text, truth = markdown(page), kept(source)
    assert formulas_in(text) == formulas_of(truth)
    for line in text.split("\n"):
        assert "$$" not in line or re.fullmatch(r" {0,8}\$\$.+\$\$", line)
    headings = [canonical_text(line) for line in text.split("\n") if re.match("#{2,4} ", line)]
    assert [re.sub(r"\$.*?\$", "$", h) for h in headings if h != "Abstract"] == [
        re.sub(r"\$.*?\$", "$", h) for h in headings_of(truth)
    ]
    words = iter(re.findall(r"[A-Za-z]{2,}", re.sub(r"\$\$.*?\$\$|(?<!\\)\$.*?(?<!\\)\$", " ", text)))
    for word in words_of(truth):
        for other in words:
            if other == word:
                break
            assert other in OF_LATEX, (other, word)
        else:
            raise AssertionError(f"{word!r} is missing")


@pytest.mark.parametrize("name", ["displays", "flight"])
def test_each_formula_heading_and_word_of_the_latex_is_in_the_text(name: str) -> None:
    require_truth(page_of(name), source_of(name))


def test_dropped_parts_are_absent_and_counted_as_the_latex_has_them() -> None:
    source, counts = source_of("flight"), Counter[str]()
    text = markdown(page_of("flight"), counts)
    assert not re.search(r"authorword|footnoteword|captionword|bibword|Generated|Refer to|Contents|@|\[1", text)
    assert {name: counts[f"cut_{name}"] for name in CUT if counts[f"cut_{name}"]} == {
        "authors": 3,  # the authors, the date and the thanks of the title
        "footnotes": source.count(r"\footnote{"),
        "captions": source.count(r"\caption{"),
        "citations": source.count(r"\cite{"),
        "bibliography": 1,
        "footer": 1,
        "contents": 1,
        "images": 1,
    }
    assert counts["cut_characters"] > 300


@pytest.mark.parametrize(
    ("part", "word", "number"),
    [
        ("authors", "authorword", 5),
        ("footnotes", "footnoteword", 2),
        ("captions", "captionword", 2),
        ("bibliography", "bibword", 2),
        ("footer", "Generated on", 1),
    ],
)
def test_a_part_that_is_not_dropped_is_in_the_text_once(part: str, word: str, number: int) -> None:
    others = tuple(name for name in ("authors", "bibliography", "footnotes", "captions", "footer") if name != part)
    text = markdown(page_of("flight"), drop=others)
    assert text.count(word) == number
    assert all(text.count(other) == 0 for other in ("footnoteword", "bibword", "Generated") if other not in word)


def test_a_note_that_is_kept_follows_its_paragraph_and_has_its_mark() -> None:
    text = markdown(page_of("flight"), drop=())
    assert "see Section 2.[^2] A second note[^3] follows" in text
    assert "\n\n[^2]: footnoteword barn owls hunt by day, at $t>0$.\n\n[^3]: footnoteword again.\n\n" in text
    assert text.startswith(r"# On the Flight of Owls in $\mathbb{R}^{3}$[^1]")
    assert "Owls hunt at night [1, 2]. The lift" in text
    assert "\n\nTable 1: captionword of owls in $m/s$.\n\n| Owl |" in text


def test_what_is_before_the_first_section_can_be_dropped() -> None:
    counts = Counter[str]()
    text = markdown(page_of("flight"), counts, before_first_section="drop")
    assert text.startswith("## 1 Introduction\n\nOwls hunt")
    assert counts["cut_before_section"] == 1
    content = unwrap_versioned_value(LatexmlContent(before_first_section="drop"))
    page = latexml_page(Document(id="1", text=page_of("flight")), content, Counter())
    assert page is not None
    assert page.metadata["title"] == r"On the Flight of Owls in $\mathbb{R}^{3}$"
    assert text_of("<p>Letter.</p>", before_first_section="drop") == "Letter."


def test_lists_and_code_have_each_mark_once() -> None:
    counts = Counter[str]()
    assert markdown(page_of("lists"), counts) == (
        PAGE_OF_LISTS := (latexml_papers.PAGES / "lists.md").read_text().rstrip("\n")
    )
    assert formulas_in(PAGE_OF_LISTS) == formulas_of(kept(source_of("lists")))
    assert counts["cut_errors"] == 2


def test_a_table_keeps_formulas_with_bars() -> None:
    text = markdown(page_of("flight"))
    assert "| Barn | $\\vert v\\vert$ | 0.4 |\n| Eagle | $\\Vert w\\Vert$ | 2.5 |" in text


@pytest.mark.parametrize(
    ("tex", "written"),
    [
        (r"\displaystyle\sum x", r"\sum x"),
        (r"\displaystyle x", "x"),
        (r"{\displaystyle x}", "x"),
        (r"\displaystylex", r"\displaystylex"),
        ("a+%\nb", "a+b"),
        ("a\\%\nb", r"a\% b"),
        ("a\\\\%\nb", r"a\\b"),
        ("a\\ ", "a\\ "),
        ("a\n  b", "a b"),
        ("a&<b", "a&<b"),
        (r"\text{if $x$}", r"\text{if $x$}"),
    ],
)
def test_tex_is_in_one_line_as_it_was_written(tex: str, written: str) -> None:
    assert text_of(f"<p>A {math(tex)}.</p>") == f"A ${written}$."


def test_a_formula_without_tex_is_linear_and_one_within_another_is_part_of_it() -> None:
    bare = "<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>"
    nested = math(r"\mbox{if $x$}").replace("<mi>x</mi>", f"<mtext>if {math('x')}</mtext>")
    assert text_of(f"<p>A {bare} and {nested} end.</p>") == r"A a/b and $\mbox{if $x$}$ end."
    image = '<img src="x.png" class="ltx_Math" alt="x^{2}">'
    assert text_of(f"<p>A {image}.</p>") == "A $x^{2}$."


def test_a_row_of_an_equation_that_has_an_empty_formula_alone_is_left_out() -> None:
    cells = [f"<tr><td>{math(tex)}</td></tr>" for tex in ("", "a=b")]
    for rows, text in ((cells[:1], "A B"), (cells, "A $$a=b$$ B")):
        equation = f'<table class="ltx_equation ltx_eqn_table">{"".join(rows)}</table>'.replace("<mi>x</mi>", "")
        assert text_of(f'<p class="ltx_p">A</p>{equation}<p class="ltx_p">B</p>').split() == text.split()


def test_a_row_that_begins_with_a_bracket_is_no_argument_of_the_line_before() -> None:
    rows = "".join(f'<tr class="ltx_eqn_row"><td class="ltx_eqn_cell">{math(tex)}</td></tr>' for tex in ("a", "[b]"))
    text = text_of(f'<table class="ltx_equationgroup ltx_eqn_table">{rows}</table>')
    assert text == r"$$\begin{gathered}a\\ {}[b]\end{gathered}$$"


def test_a_caption_that_is_there_twice_is_kept_once() -> None:
    caption = '<figcaption class="ltx_caption">Figure 1: An owl.</figcaption>'
    figure = f'<figure class="ltx_figure">{caption}<p class="ltx_p">Label</p>{caption}</figure>'
    counts = Counter[str]()
    assert markdown(article(figure * 2), counts, drop=()).count("An owl.") == 2
    assert counts["cut_repeated"] == 2


@pytest.mark.parametrize(
    "body",
    [
        "<p>a</b></p></div></section>",
        '<div class="ltx_authors"><p>name',
        '<table class="ltx_eqn_table"><tr class="ltx_eqn_row"><td class="ltx_eqn_cell">x',
        '<div class="ltx_listing"><div class="ltx_listingline">x',
        '<ol><li><span class="ltx_tag ltx_tag_item">1.',
        '<span class="ltx_note ltx_role_footnote"><p>note',
        "<math><mi>x</mi>",
        '<math alttext="x',
        "</dd></li></td>",
        "<dd>x</dd>",
        '<td class="ltx_td">x</td>',
        '<span class="ltx_tag ltx_tag_item">•</span>x',
        '\ufdee7\ufdef\ufdee0\ufdef <math alttext="y"></math>',
        '<table class="ltx_eqn_table"></table>',
        '<figcaption class="ltx_caption">x',
        '<p>a < b <a "',
    ],
)
@pytest.mark.parametrize("drop", [(), ("authors", "bibliography", "footnotes")])
def test_html_that_is_not_whole_is_read_to_its_end(body: str, drop: tuple[str, ...]) -> None:
    text = text_of(f"<p>before</p>{body}", drop=drop)
    assert text.startswith("before")
    assert "\ufdee" not in text


def convert(folder: Path, *pages: str, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    rows = [Document(id=f"2105.0000{n}", text=page, source="ar5iv") for n, page in enumerate(pages)]
    write_documents(str(folder / "pages/part-00000-of-00001.jsonl.zst"), rows)
    config = HtmlToMarkdownConfig(
        **{
            "pages_path": str(folder / "pages"),
            "output_path": str(folder / "text"),
            "latexml": LatexmlContent(),
            **fields,
        }
    )
    counts = html_to_markdown(unwrap_versioned_value(config))
    assert counts["pages"] == counts["pages_kept"] + counts["rejected"]
    assert counts["rejected"] == sum(reasons(counts).values())
    return counts, documents_of(folder / "text")


def test_pages_become_documents_and_others_are_rejected_for_a_reason(tmp_path: Path) -> None:
    pages = [page_of("flight"), "<html><p>" + "Bad gateway. " * 20, article("<p>x</p>"), article("x" * 300_000)]
    counts, documents = convert(tmp_path, *pages, max_page_characters=200_000, max_characters=None)
    assert reasons(counts) == {"not_latexml": 1, "too_short": 1, "too_long": 1}
    assert [document.id for document in documents] == ["2105.00000"]
    assert documents[0].metadata["title"] == r"On the Flight of Owls in $\mathbb{R}^{3}$"
    assert documents[0].text == markdown(page_of("flight"))
    assert (counts["formulas"], counts["displays"], counts["cut_footnotes"]) == (13, 1, 2)
    assert counts["markup_left"] == 0


def test_steps_without_the_field_have_the_same_version_and_with_it_another() -> None:
    def version_of(**fields: Any) -> str:
        step = Step(name="a", fn=html_to_markdown, config=HtmlToMarkdownConfig(pages_path="pages", **fields))
        return build_graph([step])[step].version.hash

    plain = version_of()
    assert version_of(latexml=None) == plain
    others = [
        LatexmlContent(),
        LatexmlContent(drop=versioned(("authors",))),
        LatexmlContent(before_first_section=versioned("drop")),
    ]
    assert len({plain, *(version_of(latexml=content) for content in others)}) == 4


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"drop": ("author",)},
            r"latexml\.drop has 'author'.*'authors'",
        ),
        ({"drop": "authors"}, r"latexml\.drop is 'authors', expected a tuple: \('authors',\)\."),
        ({"extractor": "latexml-9"}, r"latexml\.extractor is 'latexml-9'.*latexml-1"),
        ({"before_first_section": "remove"}, r"latexml\.before_first_section is 'remove'.*keep.*drop"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(LatexmlContentError, match=words):
        convert(tmp_path, page_of("flight"), latexml=LatexmlContent(**fields))


def test_two_kinds_of_content_are_refused(tmp_path: Path) -> None:
    for other in ({"wiki": WikiContent()}, {"main_content": MainContent()}):
        with pytest.raises(ExtractorError, match=f"{next(iter(other))} and latexml are both given"):
            convert(tmp_path, page_of("flight"), **other)


@pytest.mark.parametrize(
    "body",
    ["<math>" * 15_000, math("x") * 6_000, "<div>" * 15_000, '<span class="ltx_note ltx_role_footnote">' * 15_000,
     "<li><p>" * 15_000, '<span class="ltx_cite">[' * 15_000, "<table><tr><td>" * 15_000,
     "<img class=ltx_Math " * 15_000, '<td class="ltx_eqn_table">' * 15_000,
     '<ol><li><span class="ltx_tag_item">' * 10_000, "$" * 10**6],
    ids=["math", "maths", "div", "note", "li", "cite", "table", "img", "equation", "ol", "dollar"],
)  # fmt: skip
def test_hostile_pages_take_linear_time(body: str) -> None:
    began = time.process_time()
    content = unwrap_versioned_value(LatexmlContent(drop=()))
    latexml_page(Document(id="1", text=article(body)), content, Counter())
    assert time.process_time() - began < 3


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    latexmlc = latexml_papers.latexml(tmp_path_factory.mktemp("latexml"))
    if latexmlc is None:
        pytest.skip("Debian's package latexml cannot be had: install it, or make `apt-get download latexml` work")
    return latexmlc


@pytest.mark.long
@pytest.mark.parametrize("name", latexml_papers.NAMES)
def test_the_kept_pages_are_those_that_latexml_writes_of_the_latex(
    name: str, command: list[str], tmp_path: Path
) -> None:
    page = latexml_papers.html_by(command, source_of(name), tmp_path / name)
    assert markdown(page) == markdown(page_of(name))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_each_formula_of_a_drawn_paper_comes_back(seed: int, command: list[str], tmp_path: Path) -> None:
    source = latexml_papers.drawn_paper(random.Random(seed))
    page = latexml_papers.html_by(command, source, tmp_path / "paper", "--noparse")
    require_truth(page, source)
