"""The main content of foreign pages: found in many languages and templates, as Markdown, and each cut is counted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
from foreign_pages import LANGUAGES, ForeignPage, foreign_pages, shared_ngrams

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.stages.transform.html.main_content import COUNTS, MainContent, MainContentError
from marin_assets.stages.transform.html.main_markdown import main_markdown
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, unwrap_versioned_value, versioned

TEXT = "A sentence of the page that is long enough to be its text, and no label of a menu. "
BEFORE, AFTER = f"<p>First: {TEXT}</p>", f"<p>Last: {TEXT}</p>"


def main_text(page: str, **fields: bool) -> str | None:
    return main_markdown(page, unwrap_versioned_value(MainContent(**fields)), Counter())


def cuts_of(page: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    main_markdown(page, unwrap_versioned_value(MainContent()), counts)
    return {name: count for name, count in counts.items() if name.startswith("cut_") and count}


def convert(tmp_path: Path, pages: list[Document], **fields: object) -> tuple[dict[str, int | float], list[Document]]:
    write_documents(str(tmp_path / "pages" / shard_name(0, 1)), pages)
    config = HtmlToMarkdownConfig(
        pages_path=str(tmp_path / "pages"),
        output_path=str(tmp_path / "documents"),
        main_content=MainContent(**fields),  # type: ignore[arg-type]
        max_characters=None,
    )
    result = html_to_markdown(unwrap_versioned_value(config))
    return result, [document for shard in list_shards(config.output_path) for document in read_documents(shard)]


ALL_TEXTS = """
import json
from collections import Counter
from foreign_pages import foreign_pages
from marin_assets.stages.transform.html.main_content import MainContent
from marin_assets.stages.transform.html.main_markdown import main_markdown
from marin_assets.step.values import unwrap_versioned_value
fields = unwrap_versioned_value(MainContent())
print(json.dumps({page.name: main_markdown(page.page, fields, Counter()) for page in foreign_pages()}))
"""
"""A program that prints the text of each page by its name, in the order of the pages."""


@pytest.fixture(scope="module")
def pages() -> list[ForeignPage]:
    return foreign_pages()


def test_the_content_of_216_pages_in_18_languages_is_found(pages: list[ForeignPage]) -> None:
    assert len(pages) >= 200
    scores = {page.name: shared_ngrams(page.content, main_text(page.page) or "") for page in pages}
    for group in (*LANGUAGES, "weblog", "news", "manual", "table_layout"):
        of_group = [score for name, score in scores.items() if group in name.split("/")]
        assert mean(precision for precision, _ in of_group) >= 0.97, group
        assert mean(recall for _, recall in of_group) >= 0.97, group


@pytest.mark.long
def test_the_text_of_a_page_depends_on_the_page_alone(pages: list[ForeignPage]) -> None:
    texts = {page.name: main_text(page.page) for page in pages}
    order = [*pages, *pages[:40]]
    random.Random(1).shuffle(order)
    for page in order:
        assert main_text(page.page) == texts[page.name]
    done = subprocess.run(
        [sys.executable, "-c", ALL_TEXTS],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == texts


def test_markdown_is_kept() -> None:
    page = f"""<nav><ul><li><a href="/">Home</a></li></ul></nav><h1>T</h1>{BEFORE}<h2>Use</h2><ol><li>One
step.</li><li>Two <code>x</code></li></ol><pre>a
  b</pre><table><tr><th>n</th><th>m</th></tr><tr><td>1</td><td><a href="/m">2</a></td></tr></table>{AFTER}"""
    expected = f"""# T

First: {TEXT.strip()}

## Use

  1. One step.
  2. Two `x`

```
a
  b
```

| n | m |
| --- | --- |
| 1 | 2 |

Last: {TEXT.strip()}"""
    assert main_text(page) == expected


@pytest.mark.parametrize(
    ("field", "element", "kept"),
    [
        ("keep_links", '<p>Of <a href="/a?b=1&amp;c">the <b>page</b></a> and more text.</p>', "[the page](/a?b=1&c)"),
        ("keep_comments", f'<div class="comments"><p>A reader: {TEXT}</p></div>', "A reader:"),
        ("keep_captions", f"<figure><figcaption>A caption: {TEXT}</figcaption></figure>", "A caption:"),
        (
            "keep_alt_texts",
            '<p>See <img alt="the alternative" src="x.png"> here, and more of the text.</p>',
            "the alternative",
        ),
    ],
)
def test_what_is_no_text_by_default_is_kept_by_its_field(field: str, element: str, kept: str) -> None:
    page = f"<body>{BEFORE}{element}{AFTER}</body>"
    assert kept not in (main_text(page) or "")
    text = main_text(page, **{field: True}) or ""
    assert kept in text
    assert text.startswith("First")
    assert text.endswith(TEXT.strip())


def test_the_title_is_kept_unless_refused() -> None:
    page = f"<h1>The title</h1><p>May 5</p>{BEFORE}<h1>A part</h1>{AFTER}"
    assert (main_text(page) or "").startswith("# The title\n\nFirst")
    assert (main_text(page, keep_title=False) or "").startswith("First")
    assert "# A part" in (main_text(page, keep_title=False) or "")


def test_links_that_keep_their_address_are_harmless() -> None:
    hrefs = ("javascript:alert(1)", "data:text/html,x", "", "/a b(c)")
    page = BEFORE + "".join(
        f'<p>Number {n}: <a href="{href}">a link</a> in a sentence.</p>' for n, href in enumerate(hrefs)
    )
    text = main_text(
        page + f'<p>Code is <a href="/y"><code>g</code></a>.</p>{AFTER}',
        keep_links=True,
    )
    assert text is not None
    assert [line for line in text.split("\n") if line.startswith(("Number", "Code"))] == [
        "Number 0: a link in a sentence.",
        "Number 1: a link in a sentence.",
        "Number 2: a link in a sentence.",
        "Number 3: [a link](</a b(c)>) in a sentence.",
        "Code is [`g`](/y).",
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        f'<div style="display: none"><p>Hidden: {TEXT}</p></div>',
        f'<div style="visibility:hidden"><p>Hidden: {TEXT}</p></div>',
        f"<div hidden><p>Hidden: {TEXT}</p></div>",
        f'<div aria-hidden="true"><p>Hidden: {TEXT}</p></div>',
        f"<noscript><p>Hidden: {TEXT}</p></noscript>",
        f"<template><p>Hidden: {TEXT}</p></template>",
        f"<script>document.write('<p>Hidden: {TEXT}</p>')</script>",
        f"<!-- <p>Hidden: {TEXT}</p> -->",
        f"<style>p::after {{ content: 'Hidden: {TEXT}' }}</style>",
        f"<form><textarea>Hidden: {TEXT}</textarea></form>",
        f"<svg><title>Hidden: {TEXT}</title></svg>",
        f"<iframe>Hidden: {TEXT}</iframe>",
    ],
)
def test_hidden_text_is_no_content(hidden: str) -> None:
    page = f"<body><main>{BEFORE}{hidden}{AFTER}</main></body>"
    assert main_text(page) == f"First: {TEXT.strip()}\n\nLast: {TEXT.strip()}"


CODE = "def f():\n    return 1\n\nprint(f())"


@pytest.mark.parametrize(
    "block",
    [
        f'<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2\n3\n4</pre></div></td>'
        f'<td class="code"><div class="highlight"><pre>{CODE}</pre></div></td></tr></table>',
        f'<table><tr><td class="gutter"><pre>1\n2\n3\n4</pre></td><td class="code"><pre>{CODE}</pre></td></tr></table>',
        '<div class="highlight"><table class="lntable"><tr><td class="lntd"><pre><span class=lnt>1\n</span></pre></td>'
        f'<td class="lntd"><pre>{CODE}</pre></td></tr></table></div>',
        "<pre>"
        + "\n".join(f'<span class="linenos">{n:2} </span>{line}' for n, line in enumerate(CODE.split("\n"), 1))
        + "</pre>",
        "<pre>"
        + "\n".join(f'<span class="ln">{n}</span>{line}' for n, line in enumerate(CODE.split("\n"), 1))
        + "</pre>",
        f"<table><tr><td><pre>7\n8\n9\n10</pre></td><td><pre>{CODE}</pre></td></tr></table>",
    ],
)
def test_code_has_no_line_numbers(block: str) -> None:
    text = main_text(f"{BEFORE}{block}{AFTER}")
    assert text == f"First: {TEXT.strip()}\n\n```\n{CODE}\n```\n\nLast: {TEXT.strip()}"


def test_code_of_numbers_is_kept() -> None:
    assert "```\n3\n1\n2\n```" in (main_text(f"{BEFORE}<pre>3\n1\n2</pre>{AFTER}") or "")


def test_each_cut_has_a_reason_that_is_counted() -> None:
    assert cuts_of(BEFORE + AFTER) == {}
    assert cuts_of(f"<p>May 5</p>{BEFORE}{AFTER}") == {"cut_before": 1, "cut_characters": 4}
    assert cuts_of(f"{BEFORE}{AFTER}<p>Share this</p><h3>More</h3>") == {"cut_after": 2, "cut_characters": 13}
    assert cuts_of(f"{BEFORE}<p><a href=/x>Read this too</a></p>{AFTER}") == {"cut_links": 1, "cut_characters": 11}
    assert cuts_of(f"{BEFORE}{BEFORE}{AFTER}")["cut_duplicate"] == 1
    assert cuts_of(f"{BEFORE}<h3>Advertisement</h3><h3>Part</h3>{AFTER}") == {"cut_heading": 1, "cut_characters": 13}
    assert cuts_of(f"{BEFORE}<div>&lt;img src=x&gt;</div>{AFTER}")["cut_markup"] == 1


def test_a_notice_is_no_content_and_an_article_about_it_is() -> None:
    notice = "<p>This site uses cookies. By continuing to browse the site you agree to our use of them.</p>"
    assert "cookies" not in (main_text(f"<div>{notice}{BEFORE}{AFTER}{notice}</div>") or "")
    assert "cookies" in (main_text(f"{BEFORE}{notice}{AFTER}") or "")
    assert "cookies" in (main_text(f"<p>Bake the cookies. {TEXT * 10}</p>") or "")


def test_a_page_of_short_lines_keeps_them() -> None:
    poem = "<br>".join(f"A line of verse {n}" for n in range(30))
    text = main_text(f"<h1>Poem</h1><p>{poem}</p><p>Short</p><p>End</p>") or ""
    assert text.count("A line of verse") == 30
    names = "".join(f"<div>Name {n}</div>" for n in range(40))
    assert (main_text(f"{names}<p>{TEXT}</p>") or "").count("Name") == 40


def test_the_result_counts_characters_and_cuts(tmp_path: Path) -> None:
    """Characters without blanks: of the whole page, of what Resiliparse leaves, of what is cut of that."""
    banner = '<div class="cookie"><p>Cookies here.</p></div>'
    page = f"<body>{banner}<p>May 5</p>{BEFORE}{AFTER}<p>More</p></body>"
    result, documents = convert(tmp_path, [Document(id="a", text=page), Document(id="b", text="<p>x")])
    [document] = documents
    kept = len("".join(document.text.split()))
    assert {name: result[name] for name in COUNTS if result[name]} == {
        "page_characters": len("Cookieshere.May5More") + kept + len("x"),
        "main_characters": len("May5More") + kept + len("x"),
        "cut_characters": len("May5More"),
        "cut_before": 1,
        "cut_after": 1,
    }
    assert (result["pages"], result["pages_kept"], result["pages_unaccounted"]) == (2, 1, 0)


def test_a_comparison_in_a_script_is_no_tag_of_many_attributes(tmp_path: Path) -> None:
    script = "<script>for (i=0;i<n;i++) {" + "a = b; " * 10_000 + "}</script>"
    result, _ = convert(tmp_path, [Document(id="a", text=f"<body>{script}{BEFORE}{AFTER}</body>")])
    assert result["pages_kept"] == 1


def test_each_page_of_a_shard_has_the_text_that_it_has_alone(tmp_path: Path) -> None:
    texts = [f"<body>{BEFORE}<pre>{name}</pre><p>{name} {AFTER}</body>" for name in ("dark", "light", "dark")]
    _, documents = convert(tmp_path, [Document(id=str(number), text=text) for number, text in enumerate(texts)])
    assert [document.text for document in documents] == [main_text(text) for text in texts]
    assert documents[0].text == documents[2].text != documents[1].text


def test_items_are_numbered_after_items_of_the_same_tag_that_are_not() -> None:
    items = "<ol><li class=a>red.</li><li class=a>green.</li></ol>"
    numbered = "<ol start=7><li class=a>dark.</li><li class=a>light.</li></ol>"
    text = main_text(f"{BEFORE}{items}{numbered}{AFTER}") or ""
    lines = [line.strip() for line in text.split("\n")[1:-1] if line]
    assert lines == ["1. red.", "2. green.", "7. dark.", "8. light."]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * 20_000 + BEFORE + AFTER, "too_deep"),
        ("<table><tr><td>" * 20_000 + BEFORE + AFTER, "too_deep"),
        ("<div " + " ".join(f"a{n}=1" for n in range(200_000)) + f">{BEFORE}", "too_many_attributes"),
        ("<b></b>" * 500_000 + BEFORE + AFTER, ""),
        ("<br>" * 300_000 + BEFORE + AFTER, ""),
        ("<a href=x>" * 20_000 + BEFORE + AFTER, ""),
        ("<a href=x>link</a>\n" * 50_000 + BEFORE + AFTER, ""),
        ("<p>x" * 100_000, ""),
        ((BEFORE * 50)[:-20] + '<div class="', ""),
        (BEFORE + AFTER + "<script>" + "x" * 1_000_000, ""),
        ("\ufddb\ufddc\ufdd6l0\ufdd7&#xFDDB;&#xFDDC;" * 5_000 + BEFORE + AFTER, ""),
        ("<pre>" + "<span class=ln>1</span>" * 50_000 + "</pre>" + BEFORE + AFTER, ""),
        ("\0\ufffd" * 50_000 + BEFORE + AFTER, ""),
    ],
    ids=lambda value: str(value)[:25],
)
def test_a_hostile_page_takes_little_time_and_has_a_reason(tmp_path: Path, page: str, reason: str) -> None:
    began = time.process_time()
    result, documents = convert(tmp_path, [Document(id="a", text=page)], keep_links=True)
    assert time.process_time() - began < 30  # 2 s on a quiet machine
    assert result["pages"] == result["pages_kept"] + result["rejected"] == 1
    if reason:
        assert result[f"rejected_{reason}"] == 1
    else:
        assert [document.id for document in documents] == ["a"]


def test_main_content_enters_the_version_and_its_absence_does_not() -> None:
    from marin_assets.step.version import read_inputs

    def fields(**changes: object) -> dict[str, object]:
        config = HtmlToMarkdownConfig(pages_path="p", **changes)  # type: ignore[arg-type]
        return dict(read_inputs(Step(name="documents/x", fn=html_to_markdown, config=config)).fields)

    assert not any(name.startswith("main_content") for name in fields())
    assert fields(main_content=MainContent(keep_links=versioned(True)))["main_content.keep_links"] is True


def test_an_unknown_extractor_and_a_plain_true_are_refused_when_the_step_is_created() -> None:
    unknown = HtmlToMarkdownConfig(pages_path="p", main_content=MainContent(extractor=versioned("lynx")))
    with pytest.raises(MainContentError, match=r"main_content.extractor is 'lynx', expected 'blocks-1'"):
        Step(name="documents/x", fn=html_to_markdown, config=unknown)
    plain = HtmlToMarkdownConfig(pages_path="p", main_content=True)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="main_content"):
        Step(name="documents/x", fn=html_to_markdown, config=plain)
