"""Pages become Markdown: no markup is left, no text is lost, every page is accounted for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_assets.stages.transform.html.pieces import pieces
from marin_assets.stages.transform.html.resiliparse_markdown import resiliparse_markdown
from marin_assets.stages.transform.html_to_markdown import (
    ExtractorError,
    HtmlToMarkdownConfig,
    html_to_markdown,
    markup_left,
)
from marin_assets.step.values import unwrap_versioned_value

PAGE = """<html><head><title>T</title><style>p {}</style><script>var x = "<b>"</script></head><body>
<h1>Lists &amp; <i>more</i></h1><p>One&nbsp;two <b>three</b>,<br>a &lt;module&gt; &nbsp; </p>
<ul><li>red</li><li>green<ol><li>dark</li><li>light</li></ol></li></ul>
<pre>def f(x):
    return x &lt; 1

\tpass</pre><h3>End</h3><table><tr><td></td><td>a</td><td>b</td></tr></table><p>open <em>tag</body></html>"""

MARKDOWN = """# Lists & more

One two three,
a <module>

  - red
  - green
    1. dark
    2. light

```
def f(x):
    return x < 1

\tpass
```

### End

|  |  |  |
| --- | --- | --- |
|  | a | b |

open tag"""


def convert(tmp_path: Path, pages: list[Document], **fields: object) -> tuple[dict[str, int | float], list[Document]]:
    write_documents(str(tmp_path / "pages" / shard_name(0, 1)), pages)
    return convert_all(tmp_path, **fields)


def convert_all(tmp_path: Path, **fields: object) -> tuple[dict[str, int | float], list[Document]]:
    pages, documents = str(tmp_path / "pages"), str(tmp_path / "documents")
    config = HtmlToMarkdownConfig(pages_path=pages, output_path=documents, **fields)  # type: ignore[arg-type]
    result = html_to_markdown(unwrap_versioned_value(config))
    return result, [document for shard in list_shards(documents) for document in read_documents(shard)]


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def test_headings_lists_code_and_tables_become_markdown() -> None:
    assert resiliparse_markdown(PAGE) == MARKDOWN


def test_a_page_keeps_its_id_source_and_metadata_and_every_reject_has_a_reason(tmp_path: Path) -> None:
    long = "<p>" + "A sentence of a page. " * 10 + "</p>"
    pages = [
        Document(id="a", text=long, source="s", metadata={"k": 1}),
        Document(id="b", text="<p>short</p>"),
        Document(id="c", text="<html><script>1</script></html>"),
    ]
    result, documents = convert(tmp_path, pages)
    assert [(d.id, d.source, d.metadata) for d in documents] == [("a", "s", {"k": 1, "page": "a"})]
    assert result == {
        "pages": 3,
        "pages_kept": 1,
        "rejected": 2,
        "rejected_too_long": 0,
        "rejected_too_many_attributes": 0,
        "rejected_too_deep": 0,
        "rejected_empty": 1,
        "rejected_too_short": 1,
        "pages_unaccounted": 0,
        "documents": 1,
        "markup_left": 0,
        "bytes_in": sum(len(page.text) for page in pages),
        "bytes_out": len(documents[0].text),
    }


def test_the_documents_of_a_long_page_contain_all_of_it_and_name_it(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {i}: " + "word " * (i % 40) for i in range(300)]
    page = Document(id="p", text="".join(f"<p>{p}</p>" for p in paragraphs))
    result, documents = convert(tmp_path, [page], max_characters=1000)
    assert [d.id for d in documents] == [f"p#{n}" for n in range(len(documents))]
    assert {d.metadata["page"] for d in documents} == {"p"}
    assert result["documents"] == len(documents) > 10
    assert max(len(d.text) for d in documents) <= 1000 + 100
    assert "\n\n".join(d.text for d in documents) == "\n\n".join(p.strip() for p in paragraphs)


@pytest.mark.parametrize("text", ["x" * 500, "x\n" * 500, "a\n\n" * 400, "a\n\n" + "long line " * 90 + "\n\nend"])
def test_pieces_hold_all_lines_and_are_never_too_short(text: str) -> None:
    text = text.strip("\n")
    found = list(pieces(text, 20, 100))
    assert [line for line in "\n".join(found).split("\n") if line] == [line for line in text.split("\n") if line]
    assert all(len(piece) >= 20 for piece in found)
    lines = max(map(len, text.split("\n")))
    assert all(len(piece) <= 120 + lines for piece in found)


def test_markup_is_left_if_the_text_has_more_tags_than_the_page_mentions() -> None:
    assert markup_left("a <br> b", "<p>a <br> b</p>")
    assert not markup_left("write <br> here", "<p>write &lt;br&gt; here</p>")
    assert not markup_left("<module 'x'>, List<int> and a < b", "<p>…</p>")


@pytest.mark.long
def test_the_documentation_of_python_loses_no_word_and_keeps_no_markup(tmp_path: Path) -> None:
    from resiliparse.extract.html2text import extract_plain_text

    pydoc = PydocConfig(output_path=str(tmp_path / "pages"), shards=2, max_modules=20)
    rendered = render_pydoc(unwrap_versioned_value(pydoc))
    result, documents = convert_all(tmp_path)
    assert result["pages"] == rendered["pages"] == result["pages_kept"] + result["rejected"]
    assert result["bytes_in"] == rendered["bytes"]
    assert result["markup_left"] == 0
    assert [Path(s).name for s in list_shards(str(tmp_path / "documents"))] == [shard_name(i, 2) for i in range(2)]
    texts: dict[str, list[str]] = {}
    for document in documents:
        assert "\u00a0" not in document.text
        assert "\n\n\n" not in document.text
        assert not re.search(r"[ \t]$", document.text, flags=re.MULTILINE)
        texts.setdefault(document.metadata["page"], []).append(document.text)
    assert len(texts) == result["pages_kept"] > 80
    for shard in list_shards(str(tmp_path / "pages")):
        for page in read_documents(shard):
            if page.id in texts:
                assert words("\n".join(texts[page.id])) == words(extract_plain_text(page.text)), page.id


def test_an_unknown_extractor_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ExtractorError, match=r"The extractor is 'lynx', expected 'resiliparse-2'"):
        convert(tmp_path, [Document(id="a", text="x")], extractor="lynx")


def test_a_bound_that_leaves_no_room_for_pieces_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_characters is 150, expected at least twice min_characters"):
        convert(tmp_path, [Document(id="a", text="x")], max_characters=150)


@pytest.mark.long
def test_the_documents_are_the_same_bytes_in_process_and_on_ray(
    shared_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(4):
        pages = [Document(id=f"{i}/{n}", text=f"<h1>Page {n}</h1><p>{'some words ' * 30 * n}</p>") for n in range(9)]
        write_documents(f"{tmp_path}/pages/{shard_name(i, 4)}", pages)
    counts, written = {}, {}
    for place in ("on Ray", "here"):
        config = HtmlToMarkdownConfig(pages_path=f"{tmp_path}/pages", output_path=f"{tmp_path}/{place}")
        counts[place] = html_to_markdown(unwrap_versioned_value(config))
        written[place] = {Path(shard).name: Path(shard).read_bytes() for shard in list_shards(f"{tmp_path}/{place}")}
        monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    assert len(written["here"]) == 4
    assert (counts["on Ray"], written["on Ray"]) == (counts["here"], written["here"])
