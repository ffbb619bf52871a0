"""Articles in JATS become Markdown: what each element becomes, and what is cut and counted."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of, reasons
from pubmed_files import article, real_files

from marin_assets.documents import Document, write_documents
from marin_assets.stages.transform.jats.citations import CUT, is_number, without_cut
from marin_assets.stages.transform.jats.jats_content import COUNTS, JatsContent, JatsContentError
from marin_assets.stages.transform.jats.jats_to_markdown import JatsToMarkdownConfig, jats_to_markdown
from marin_assets.step.values import unwrap_versioned_value

Convert = Callable[..., tuple[dict[str, Any], list[Document]]]


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Convert:
    """Convert pages; fields of the content are those of JatsContent."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    numbers = iter(range(1000))

    def run(*texts: str, config: dict[str, Any] | None = None, **content: Any) -> tuple[dict[str, Any], list[Document]]:
        place = tmp_path / str(next(numbers))
        pages = [Document(id=f"PMC{n}", text=text, source="oa_comm") for n, text in enumerate(texts, 1)]
        write_documents(f"{place}/pages/part-0.jsonl.zst", pages)
        fields = {"min_characters": 1, **(config or {}), "content": JatsContent(**content)}
        paths = {"pages_path": f"{place}/pages", "output_path": f"{place}/out"}
        counts = jats_to_markdown(unwrap_versioned_value(JatsToMarkdownConfig(**paths, **fields)))
        assert counts["pages"] == counts["pages_kept"] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        return counts, documents_of(f"{place}/out")

    return run


def body_of(convert: Convert, body: str, **fields: Any) -> str:
    return convert(article(body=body, title=""), **fields)[1][0].text


def test_title_abstract_and_sections_are_headings_by_depth(convert: Convert) -> None:
    meta = (
        "<abstract><sec><title>Aim</title><p>We count.</p></sec></abstract>"
        '<abstract abstract-type="graphical"><p>Picture</p></abstract><trans-abstract><p>Wir zählen.</p>'
        "</trans-abstract>"
    )
    body = (
        "<p>Start.</p><sec><label>1.</label><title>On <sup>13</sup>C</title><p>A.</p>"
        "<sec><title>Deeper</title><p>B.</p></sec></sec>"
    )
    title = 'M<italic>m</italic>PPOX Inhibits <italic>M. tuberculosis</italic><xref ref-type="fn">*</xref>'
    counts, (document,) = convert(article(body=body, title=title, meta=meta))
    assert document.text == (
        "# MmPPOX Inhibits M. tuberculosis\n\n## Abstract\n\n### Aim\n\nWe count.\n\nStart.\n\n## 1. On ^13C\n\nA.\n\n"
        "### Deeper\n\nB."
    )
    assert counts["cut_abstract"] == 2
    assert "Abstract" not in convert(article(meta=meta), abstract=False)[1][0].text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>H<sub>2</sub>O at 10<sup>-3</sup>, x<sup>a+b</sup>, t<sub>K </sub>and.</p>",
         "H_2O at 10^-3, x^(a+b), t_K and."),
        ("<p>a<break/>b</p>", "a b"),
        ("<p>one</p><p>two<list><list-item><p>a</p></list-item><list-item><p>b</p></list-item></list>three</p>",
         "one\n\ntwo\n\n- a\n- b\n\nthree"),
        ('<list list-type="order"><list-item><p>a</p><list><list-item><p>b</p></list-item></list></list-item></list>',
         "1. a\n   - b"),
        ('<list><list-item><label>(i)</label><p>a</p></list-item></list>', "- (i) a"),
        ("<def-list><def-item><term>owl</term><def><p>a bird</p></def></def-item></def-list>", "- owl: a bird"),
        ("<disp-quote><p>a</p><p>b</p></disp-quote>", "> a\n>\n> b"),
        ("<preformat>a  b\n c</preformat>", "```\na  b\n c\n```"),
        ("<p>See <xref ref-type='fig' rid='f'>Figure 1</xref>, <ext-link>here</ext-link>.</p>", "See Figure 1, here."),
        ("<fig><label>Figure 1</label><caption><title>Owls.</title><p>At night.</p></caption><graphic/></fig>",
         "Figure 1. Owls. At night."),
        ("<p>a<disp-formula><label>(1)</label><mml:math><mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn></mml:msup>"
         "</mml:math></disp-formula>b</p>", "a\n\nx^2 (1)\n\nb"),
        (r"<p>so <inline-formula><tex-math>\documentclass{x}\begin{document}$$\alpha_1$$\end{document}</tex-math>"
         r"</inline-formula>.</p>", r"so $\alpha_1$."),
        (r"<disp-formula><alternatives><tex-math>\frac{a}{b}</tex-math><mml:math/></alternatives></disp-formula>",
         r"$$\frac{a}{b}$$"),
        ("<boxed-text><caption><title>Box</title></caption><p>a</p></boxed-text>", "Box\n\na"),
        ("<fig><label>Figure 1</label><table><tr><td>a</td></tr></table></fig>", "Figure 1. a"),
        ("<sec>a<title>T</title>b<p>c</p>d</sec>", "## T\n\nab\n\nc\n\nd"),
        ("<list>a<p>b</p><list-item>c<p>d</p></list-item></list>", "a\n\nb\n\n- c\n  d"),
        ("<p>a <unheard-of>b</unheard-of> c</p>", "a b c"),
    ],
)  # fmt: skip
def test_each_element_has_its_markdown(convert: Convert, body: str, text: str) -> None:
    assert body_of(convert, body) == text


def test_a_table_is_markdown_below_its_caption_and_above_its_notes(convert: Convert) -> None:
    body = (
        "<table-wrap><label>Table 1</label><caption><p>Owls</p></caption><table><thead><tr><th>Kind</th>"
        "<th>n|m</th></tr></thead><tbody><tr><td rowspan='2'>Bubo</td><td>1<xref ref-type='table-fn'>a</xref></td></tr>"
        "<tr><td>2<break/>3</td></tr></tbody></table><table-wrap-foot><fn><label>a</label><p>at night</p>"
        "</fn></table-wrap-foot></table-wrap>"
    )
    counts, (document,) = convert(article(body=body, title=""))
    assert document.text == (
        "Table 1. Owls\n\n| Kind | n\\|m |\n| --- | --- |\n| Bubo | 1a |\n| Bubo | 2 3 |\n\na at night"
    )
    assert counts["tables"] == 1


def test_a_table_of_oasis_is_markdown(convert: Convert) -> None:
    body = (
        '<table-wrap><table><tgroup><colspec colname="a"/><colspec colname="b"/><thead><row><entry>x</entry>'
        '<entry>y</entry></row></thead><tbody><row><entry namest="a" nameend="b">z</entry></row></tbody>'
        "</tgroup></table></table-wrap>"
    )
    assert body_of(convert, body) == "| x | y |\n| --- | --- |\n| z |  |"


def test_a_table_that_is_an_image_and_a_formula_that_is_one_are_counted(convert: Convert) -> None:
    body = (
        "<table-wrap><label>Table 1</label><graphic/></table-wrap><disp-formula><graphic/></disp-formula>"
        "<p>text <inline-formula><inline-graphic/></inline-formula></p>"
    )
    counts, (document,) = convert(article(body=body, title=""))
    assert document.text == "Table 1\n\ntext"
    assert (counts["table_images"], counts["formula_images"], counts["tables"]) == (1, 2, 0)


def test_cells_that_span_far_more_than_they_have_become_lines(convert: Convert) -> None:
    row = "<tr>" + "<td colspan='1000'>x</td>" * 300 + "</tr>"
    text = body_of(convert, f"<table-wrap><table>{row}{'<tr><td>y</td></tr>' * 300}</table></table-wrap>")
    assert text.startswith("x, x, x")
    assert len(text) < 10_000


REFERENCES = (
    '<p>Shown [<xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2a</xref>], by '
    '<xref ref-type="bibr">Smith 1999</xref>.</p>'
)


@pytest.mark.parametrize(
    ("citations", "text", "cut"),
    [
        ("drop_numbers", "Shown, by Smith 1999.", 2),
        ("drop", "Shown, by.", 3),
        ("keep", "Shown [1,2a], by Smith 1999.", 0),
    ],
)
def test_marks_of_references_are_kept_by_field(convert: Convert, citations: str, text: str, cut: int) -> None:
    counts, (document,) = convert(article(body=REFERENCES, title=""), citations=citations)
    assert document.text == text
    assert counts["cut_citation"] == cut


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("shown [#,#–#].", "shown."),
        ("shown#,#. Then", "shown. Then"),
        ("in # we", "in we"),
        ("in [#, their figure 5] x", "in [their figure 5] x"),
        ("(see #; #) x (and) y", "x (and) y"),
        ("x^(#,#) y", "x y"),
        ("", ""),
    ],
)
def test_a_line_closes_around_marks(line: str, text: str) -> None:
    assert without_cut(line.replace("#", CUT)).strip() == text


def test_marks_without_letters_are_numbers() -> None:
    assert all(map(is_number, ("12", "[3]", "12a", "3a,b", "*", "1–3")))
    assert not any(map(is_number, ("Smith 2003", "A1", "et al", "Ω")))


def test_hostile_lines_of_marks_take_linear_time() -> None:
    without_cut("(" + (CUT + ", , ") * 10_000)
    without_cut("(" * 10_000 + CUT)
    assert not is_number("1" * 100_000 + "xx")


@pytest.mark.parametrize(
    "name", ["sec", "sup", "italic", "list/list-item", "disp-quote", "table-wrap", "boxed-text", "td", "fn"]
)
def test_elements_in_one_another_up_to_the_limit_are_converted(convert: Convert, name: str) -> None:
    names = (name.split("/") * 95)[:95]
    body = "".join(f"<{name}>" for name in names) + "owl" + "".join(f"</{name}>" for name in reversed(names))
    assert "owl" in body_of(convert, body)


@pytest.mark.parametrize("part", ["<sup>a</sup>", "<italic/> <sup>a</sup>", "<sup> </sup>", "<p/>", "<fn/>", "<xref/>"])
def test_many_empty_elements_take_linear_time(convert: Convert, part: str) -> None:
    assert body_of(convert, f"<p>{'<italic/> ' * 10_000}{part * 10_000} owl</p>").endswith("owl")


ELEMENTS = (
    "sec", "title", "label", "p", "list", "list-item", "def-list", "def-item", "term", "def", "disp-quote",
    "boxed-text", "fig", "caption", "table-wrap", "table-wrap-foot", "table", "thead", "tbody", "tr", "td", "th", "fn",
    "xref", "sup", "sub", "italic", "code", "alternatives", "supplementary-material", "media", "inline-formula",
    "disp-formula", "verse-group", "verse-line", "statement", "unheard-of", "break", "graphic",
)  # fmt: skip


def test_no_word_is_lost_wherever_it_stands(convert: Convert) -> None:
    draw = random.Random(5)

    def tree(depth: int) -> str:
        name = draw.choice(ELEMENTS)
        inside = "".join(tree(depth - 1) for _ in range(draw.randrange(4))) if depth else ""
        words.append(f"w{len(words)}z")
        tail = f" w{len(words)}z "
        words.append(tail.strip())
        return f"<{name}> {words[-2]} {inside}</{name}>{tail}"

    bodies, expected = [], []
    for _ in range(300):
        words: list[str] = []
        bodies.append("".join(tree(5) for _ in range(3)))
        expected.append(set(words))
    _, documents = convert(*(article(body=body) for body in bodies), supplements=True, citations="keep")
    for body, words_of_body, document in zip(bodies, expected, documents, strict=True):
        lost = words_of_body - set(re.findall(r"w\d+z", document.text))
        assert not lost, f"{sorted(lost)} of {body}"


def test_what_stands_behind_the_body_is_kept_by_field(convert: Convert) -> None:
    back = (
        "<ack><title>Thanks</title><p>To owls.</p></ack><app-group><app><title>Appendix</title><p>More.</p>"
        "</app></app-group><ref-list><title>References</title><ref><label>1</label><mixed-citation>"
        "<string-name>Smith J</string-name>. "
        "<source>Owls</source>.</mixed-citation></ref><ref><element-citation><person-group><name><surname>Roe</surname>"
        "<given-names>R</given-names></name></person-group><source>Bats</source><year>1999</year>"
        "</element-citation></ref>"
        "</ref-list>"
    )
    rest = (
        "<floats-group><fig><label>Figure 2</label><caption><p>Late.</p></caption></fig></floats-group><sub-article/>"
    )
    body = (
        "<p>Text<fn><p>A note.</p></fn>.</p>"
        "<supplementary-material><caption><p>File</p></caption></supplementary-material>"
    )
    counts, (document,) = convert(article(body=body, title="", back=back, rest=rest))
    assert document.text == "Text.\n\nFigure 2. Late.\n\n## Footnotes\n\n- A note."
    names = ("reference", "back_matter", "supplement", "article", "footnote")
    assert [counts[f"cut_{name}"] for name in names] == [1, 2, 1, 1, 0]
    every = {"references": True, "back_matter": True, "supplements": True, "footnotes": False, "captions": False}
    counts, (document,) = convert(article(body=body, title="", back=back, rest=rest), **every)
    assert document.text == (
        "Text.\n\nFile\n\n## Thanks\n\nTo owls.\n\n## Appendix\n\nMore.\n\n## References\n\n- Smith J. Owls.\n"
        "- Roe R, Bats, 1999"
    )
    assert [counts[f"cut_{name}"] for name in (*names, "caption")] == [0, 0, 0, 1, 1, 1]


def test_each_other_page_has_one_reason(convert: Convert) -> None:
    texts = [article(1), "<article", "<html/>", article(body=""), "<article><body>x</body></article>"]
    texts.append(article(body="<sec>" * 110 + "</sec>" * 110))
    counts, documents = convert(*texts, config={"min_characters": 20})
    assert [document.id for document in documents] == ["PMC1"]
    assert reasons(counts) == {"bad_xml": 1, "bad_article": 1, "no_body": 1, "too_short": 1, "too_deep": 1}
    assert counts["pages_unaccounted"] == 0


def test_no_kept_page_is_an_error(convert: Convert) -> None:
    with pytest.raises(JatsContentError, match=r"None of the 1 pages of '.*' is kept \(1 no_body\), expected articles"):
        convert(article(body=""))


def test_a_long_article_is_divided_by_field(convert: Convert) -> None:
    body = "".join(f"<p>{'owl ' * 100}</p>" for _ in range(10))
    _, documents = convert(article(body=body), config={"min_characters": 100, "max_characters": 1000})
    assert [document.id for document in documents][:2] == ["PMC1#0", "PMC1#1"]
    assert {document.metadata["page"] for document in documents} == {"PMC1"}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"citations": "dorp"}, r"jats.citations is 'dorp', expected"),
        ({"extractor": "jats-9"}, r"jats.extractor is 'jats-9'"),
        ({"config": {"min_characters": 100, "max_characters": 150}}, "max_characters is 150"),
    ],
)
def test_a_wrong_field_is_refused(convert: Convert, fields: dict[str, Any], error: str) -> None:
    with pytest.raises(JatsContentError, match=error):
        convert(article(), **fields)


INLINE = ("italic", "bold", "sub", "sup", "xref", "ext-link", "underline")
DROPPED = ("object-id", "supplementary-material")


@pytest.mark.long
@pytest.mark.parametrize("citations", ["drop_numbers", "drop", "keep"])
def test_the_text_of_real_articles_has_the_words_of_their_body(convert: Convert, citations: str) -> None:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
    roots = [etree.parse(path, parser).getroot() for path in sorted(real_files().glob("*.nxml"))]
    texts = [etree.tostring(root, encoding="unicode") for root in roots]
    counts, documents = convert(*texts, citations=citations)
    assert counts["pages_kept"] == 8
    cut = 0
    for root, document in zip(roots, documents, strict=True):
        body = root.find("body")
        for element in list(body.iter()):
            is_mark = element.tag == "xref" and element.get("ref-type") == "bibr" and citations != "keep"
            if element.tag in DROPPED or (is_mark and (citations == "drop" or is_number("".join(element.itertext())))):
                cut += is_mark
                tail = element.tail
                element.clear()
                element.tail = tail
        for element in body.iter():
            if element.tag not in INLINE:
                element.text, element.tail = f" {element.text or ''}", f" {element.tail or ''}"
        expected = Counter(re.findall(r"\w+", "".join(body.itertext())))
        plain = re.sub(r"[_^](?:\(([^()]*)\))?", lambda match: match[1] or "", document.text)
        missing = expected - Counter(re.findall(r"\w+", plain))
        assert 1 - missing.total() / expected.total() >= 0.99, (document.id, missing.most_common(9))
        tables = sum(1 for _ in body.iter("table")) + sum(1 for _ in root.iterfind("floats-group//table"))
        assert document.text.count("| --- |") >= tables
        assert "\ufdd0" not in document.text
    assert counts["cut_citation"] >= cut
    assert {name: counts[name] for name in COUNTS if name not in ("cut_characters", "cut_citation")} == {
        "cut_caption": 0, "cut_footnote": 0, "cut_reference": 8, "cut_back_matter": 8, "cut_abstract": 0,
        "cut_supplement": 6, "cut_alternative": 16, "cut_article": 0, "formulas": 0, "formula_images": 24,
        "tables": 21, "table_images": 0,
    }  # fmt: skip
