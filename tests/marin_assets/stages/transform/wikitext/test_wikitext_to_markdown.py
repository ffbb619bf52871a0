"""Wikitext becomes Markdown without its markup, and what templates hid is counted."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of, reasons

from marin_assets.documents import Document, write_documents
from marin_assets.stages.download.wiki.read_wiki_xml import ReadWikiXmlConfig, read_wiki_xml
from marin_assets.stages.transform.html.wiki_content import WikiContentError
from marin_assets.stages.transform.html_to_markdown import ExtractorError
from marin_assets.stages.transform.wikitext.content import WikitextContent, WikitextContentError
from marin_assets.stages.transform.wikitext.sections import content_of
from marin_assets.stages.transform.wikitext.wikitext_to_markdown import WikitextToMarkdownConfig, wikitext_to_markdown
from marin_assets.step.values import unwrap_versioned_value

FIELDS = unwrap_versioned_value(WikitextContent())
GENSIM = "gensim==4.4.0"
LEFT = re.compile(r"thumb\||\[\[|\]\]|\{\{|\}\}|'''|Category:|Категория:|\{\||\|\}|^\|-|<ref", re.MULTILINE)


def page(text: str, **metadata: Any) -> Document:
    return Document(id="enwiki/1", text=text, source="wiki", metadata={"language": "en", "title": "Owl", **metadata})


def text_of(text: str, **metadata: Any) -> str:
    return content_of(page(text, **metadata), FIELDS).text


def convert(folder: Path, *pages: Document, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    write_documents(f"{folder}/pages/part-00000-of-00001.jsonl.zst", pages)
    config = WikitextToMarkdownConfig(pages_path=f"{folder}/pages", output_path=f"{folder}/text", **fields)
    counts = wikitext_to_markdown(unwrap_versioned_value(config))
    assert counts["pages"] == counts["pages_kept"] + counts["rejected"]
    assert counts["pages_unaccounted"] == 0
    return counts, documents_of(f"{folder}/text")


@pytest.mark.parametrize(
    ("wikitext", "markdown"),
    [
        ("'''Owls''' ''hunt'' l''''âme'''", "Owls hunt l'âme"),
        ("an [[owl]], [[Owl (bird)|owls]] and [[wikt:owl|words]]", "an owl, owls and words"),
        ("a [http://a.org page], [http://b.org], http://c.org", "a page, , http://c.org"),
        ("note [sic] [[owl|[an owl]]]", "note [sic] [an owl]"),
        ("Owls{{citation needed|date=May}} hunt.<ref>[[Smith]] {{cite|x}}</ref><ref name=a />", "Owls hunt."),
        ("born ({{lang|fr|hibou}}; {{IPA|u}}, 1950) ({{a}})", "born (1950)"),
        ("{{Infobox\n| a = {{b|[[c]]}}\n}}\nText", "Text"),
        ("{{{1|x}}} {{{{{a}}}}} y", "y"),
        ("[[File:a.jpg|thumb|An [[owl]]]]\n[[Image:b.png]] text [[:File:c.jpg]]", "text c.jpg"),
        ("x [[de:Eule]] [[zh-min-nan:Chu]] y", "x y"),
        ("a <!-- hidden {{ --> b <!-- open", "a b"),
        ("<math>a < b {{x}}</math> <chem>H2O</chem>", r"$a < b {{x}}$ $\ce{H2O}$"),
        ("<nowiki>[[a]] '''</nowiki> b", "[[a]] ''' b"),
        ("use <code>[[nodiscard]]</code> and <code>a '''b'''</code>", "use `nodiscard` and `a b`"),
        ('x\n<syntaxhighlight lang="c">\nint a[[1]];\n</syntaxhighlight>\ny', "x\n\n```c\nint a[[1]];\n```\n\ny"),
        ("* a\n** b\n*: c\n# d\n: e\n; f", "- a\n  - b\n  c\n1. d\ne\nf"),
        ("one<br>two<br />three\n* a<br>b", "one\ntwo\nthree\n- a b"),
        ("H<sub>2</sub>O <span style='x'>is</span> <div>wet</div>", "H2O is wet"),
        ("a&nbsp;b &lt;c&gt; List<int>", "a b <c> List<int>"),
        ('__NOTOC__\ntext\n{| class="unclosed"\n| a = b\n|-\n! c', "text"),
        ("{{unclosed | a\ntext [[unclosed\n\nrest", "unclosed | a\ntext unclosed\n\nrest"),
        ("a }} b ]] c |} d", "a b c d"),
        (" indented\n  code", "indented\n code"),
    ],
)  # fmt: skip
def test_markup_becomes_markdown(wikitext: str, markdown: str) -> None:
    text = text_of(wikitext)
    assert re.sub("  +", " ", text) == re.sub("  +", " ", markdown)


def test_headings_become_markdown_and_some_sections_are_dropped() -> None:
    body = "Lead\n== Food ==\n=== ''Mice'' ===\nMany\n== Empty ==\n{{main}}\n==See also==\n* [[Bat]]\n=== Sub ===\nx\n"
    body += "== End ==\ny"
    content = content_of(page(body + "\n== External links ==\n[[Category:Owls|*]]\n[[category:Night_birds]]"), FIELDS)
    assert content.text == "Lead\n\n## Food\n\n### Mice\n\nMany\n\n## End\n\ny"
    assert content.categories == ("Owls", "Night birds")
    assert content.hidden["sections_dropped"] == 2


def test_a_heading_with_a_line_break_is_one_line() -> None:
    assert text_of("== Owls<br>and<br />bats ==\nMany") == "## Owls and bats\n\nMany"


def test_categories_and_files_have_the_names_of_their_wiki() -> None:
    namespaces = {"6": "Tiedosto", "14": "Owlgroup"}
    wikitext = "a [[Tiedosto:x.jpg|thumb]] [[Owlgroup:Birds]] [[Категория:Птицы]] [[:Category:Owls]] [[Категория]]"
    content = content_of(page(wikitext, namespaces=namespaces), FIELDS)
    assert content.text.split() == ["a", "Owls", "Категория"]
    assert content.categories == ("Birds", "Птицы")


def test_a_category_has_what_its_marks_stand_for() -> None:
    assert content_of(page("[[Category:<nowiki>C</nowiki><br>of <math>n</math>]]"), FIELDS).categories == ("C of $n$",)


def test_tables_of_data_become_markdown_and_others_are_counted() -> None:
    table = '{| class="wikitable"\n|+ style="x" | Owls\n! Name !! Size\n|-\n| rowspan="2" | [[Owl]] || 1 | x\n|-\n'
    table += "| 2<br>3 {{a}}\n|}"
    assert text_of(f"x\n{table}\ny") == "x\nOwls\n\n| Name | Size |\n| --- | --- |\n| Owl | x |\n| Owl | 2 3 |\n\ny"
    layouts = [
        "{|\n|\n{|\n| a || b\n|-\n| c || d\n|}\n|}",
        "{|\n| alone\n|}",
        '{| class="navbox"\n| a || b\n|-\n| c || d\n|}',
        "{|\n|}",
    ]
    for layout in layouts:
        content = content_of(page(f"x\n{layout}\ny"), FIELDS)
        assert content.text.split() == ["x", "y"]
        assert content.hidden["tables_dropped"] >= 1


def test_what_a_page_lacks_is_counted_in_its_metadata_and_in_the_result(tmp_path: Path) -> None:
    words = "Owls hunt at night. " * 20
    first = page(
        words + "{{a|{{b}}}} <ref>x</ref> <math>y</math> [[File:z.jpg]] <gallery>q</gallery> [[Category:Owls]]"
    )
    second = page(words + "{{c}}")
    counts, documents = convert(tmp_path, first, second)
    expected = {"templates": 2, "tables_dropped": 0, "references": 1, "images": 1, "others": 1, "tables": 0,
                "formulas": 1, "sections_dropped": 0}  # fmt: skip
    assert documents[0].metadata == {
        "language": "en", "title": "Owl", "page": "enwiki/1", "categories": ["Owls"], "wikitext": expected,
    }  # fmt: skip
    assert documents[0].text.startswith("# Owl\n\nOwls hunt")
    assert [counts[name] for name in ("templates", "references", "images", "formulas")] == [3, 1, 1, 1]


def test_each_rejected_page_has_one_reason(tmp_path: Path) -> None:
    words = "Owls hunt at night. " * 20
    pages = [page(text) for text in (words, f"{words}{{{{Disambig|x}}}}", "{{a}}", "An owl.", "1950 " * 200,
                                     "An owl is a bird. " * 8, "+- " * 99, "x" * 2001)]  # fmt: skip
    counts, documents = convert(tmp_path, *pages, max_page_characters=2000)
    assert len(documents) == 1
    assert reasons(counts) == {"disambiguation": 1, "empty": 1, "too_short": 1, "mostly_digits": 1, "too_few_words": 1,
                               "mostly_specials": 1, "too_long": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "error", "sentence"),
    [
        (
            {"content": WikitextContent(extractor="wikitext-0")},
            WikitextContentError,
            "content.extractor is 'wikitext-0'",
        ),
        ({"content": WikitextContent(max_digit_fraction=50)}, WikiContentError, "content.max_digit_fraction is 50"),
        ({"max_characters": 3}, ExtractorError, "max_characters is 3"),
    ],
)
def test_a_wrong_field_is_refused(
    tmp_path: Path, fields: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        convert(tmp_path, page("x"), **fields)


@pytest.mark.parametrize(
    "body",
    ["{{", "[[", "<ref>", "\n{|\n", "[http://a ", "{{{", "<b>", '<div a="', "{{a|[[", "[[a|{{", "<!--", "\n==",
     "\n{|\n|-\n| ",     "<math>", "</b>", "{{a}}", "[[a]]", "\n* a", "''a''", "(,"],
)  # fmt: skip
@pytest.mark.long
def test_hostile_pages_take_linear_time(body: str) -> None:
    def cpu_s(copies: int) -> float:
        began_s = time.process_time()
        content_of(page(body * copies), FIELDS)
        return time.process_time() - began_s

    small, large = (min(cpu_s(copies) for _ in range(3)) for copies in (300, 3000))
    assert large < 40 * max(small, 0.005)


@pytest.fixture(scope="module")
def gensim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of real dumps of en and bg, which gensim's wheel has for its tests."""
    folder = tmp_path_factory.mktemp("gensim")
    command = [
        str(Path(sys.prefix).resolve().parent / ".tools/bin/uv"),
        "pip",
        "install",
        "--no-deps",
        "--target",
        str(folder),
        GENSIM,
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{GENSIM} cannot be had: {error}")
    return folder / "gensim/test/test_data"


@pytest.mark.long
def test_no_markup_is_left_of_real_dumps(gensim: Path, tmp_path: Path) -> None:
    source = tmp_path / "dumps"
    source.mkdir()
    for path in gensim.glob("*wiki*.bz2"):
        (source / path.name).symlink_to(path)
    config = ReadWikiXmlConfig(input_path=str(source), output_path=str(tmp_path / "raw"))
    counts = read_wiki_xml(unwrap_versioned_value(config))
    assert (counts["files"], counts["articles"], counts["pages"]) == (3, 214, 112)
    assert reasons(counts) == {"redirect": 99, "namespace": 3}
    began_s = time.process_time()
    config = WikitextToMarkdownConfig(pages_path=str(tmp_path / "raw"), output_path=str(tmp_path / "text"))
    counts = wikitext_to_markdown(unwrap_versioned_value(config))
    print(f"{counts['pages'] / (time.process_time() - began_s):.0f} articles/CPU s")
    assert counts["pages_kept"] == 103
    assert (counts["formulas"], counts["references"]) == (153, 8662)
    for document in documents_of(tmp_path / "text"):
        text = re.sub(r"\$[^$\n]+\$|`[^`\n]+`", "", document.text)
        left = re.search(
            r"thumb\||\[\[|\]\]|\{\{|\}\}|'''|Category:|Категория:|\{\||\|\}|^\|-|<ref", text, re.MULTILINE
        )
        assert left is None, (document.id, left)
