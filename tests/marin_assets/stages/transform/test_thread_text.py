"""A question and its answers become one text, by templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crawls import documents_of

from marin_assets.documents import Document, write_documents
from marin_assets.stages.transform.html.thread_content import ThreadContent, ThreadContentError
from marin_assets.stages.transform.html.wiki_content import WikiContent
from marin_assets.stages.transform.html_to_markdown import ExtractorError, HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.values import unwrap_versioned_value


def page_of(asked: str, *answers: str, **metadata: Any) -> Document:
    """A page as read_stackexchange writes it; answers have the ids 2, 3, …, and their ids as votes."""
    posts = [f'<article id="post-{id}">\n{body}\n</article>' for id, body in enumerate((asked, *answers), 1)]
    facts = {
        "url": "https://dba.stackexchange.com/q/1",
        "title": "How?",
        "date": "2012-01-04",
        "score": 12,
        "tags": ["sql", "c++"],
        "site": "dba.stackexchange.com",
        "question": 1,
        "answers": [{"id": id, "score": id, "accepted": id == 2, "date": "", "author": f"user{id}"}
                    for id in range(2, 2 + len(answers))],
    }  # fmt: skip
    text = "<h1>How?</h1>\n" + "\n".join(posts) + "\n"
    return Document(id="dba.stackexchange.com/1", text=text, source="stack", metadata={**facts, **metadata})


def convert(folder: Path, *pages: Document, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    write_documents(str(folder / "pages/a.jsonl.zst"), pages)
    given = {"thread": ThreadContent(), "max_characters": None, "min_characters": 1, **fields}
    config = HtmlToMarkdownConfig(pages_path=str(folder / "pages"), output_path=str(folder / "text"), **given)
    counts = html_to_markdown(unwrap_versioned_value(config))
    return counts, documents_of(folder / "text")


def test_the_template_is_marins(tmp_path: Path) -> None:
    page = page_of("<p>Why?</p>", "<p>Because.</p>", "<ul><li>a</li><li>b</li></ul>")
    counts, (document,) = convert(tmp_path, page)
    assert document.text == (
        "# Question\nTitle: How?\nWhy?\n\n# Answer\n> 2 votes\nBecause.\n\n# Answer\n> 3 votes\n  - a\n  - b\n\n"
        "---\nTags: sql, c++\n---"
    )
    assert document.metadata == {**page.metadata, "page": page.id}
    assert (counts["pages"], counts["pages_kept"], counts["answers"], counts["answers_without_text"]) == (1, 1, 2, 0)


def test_another_template_has_other_facts_and_braces_of_a_text_are_kept(tmp_path: Path) -> None:
    thread = ThreadContent(
        question_template="{{{title}}} ({votes}, {date}, {url}, {site}): {question}",
        answer_template="\n{author} {accepted}[{votes}{date}]: {answer}",
        tags_template="",
    )
    _, (document,) = convert(tmp_path, page_of("<p>{question} {0}</p>", "<p>{x!r}</p>", "<p>b</p>"), thread=thread)
    assert document.text == (
        "{How?} (12, 2012-01-04, https://dba.stackexchange.com/q/1, dba.stackexchange.com): {question} {0}\n"
        "user2 accepted[2]: {x!r}\nuser3 [3]: b"
    )


def test_formulas_keep_their_tex(tmp_path: Path) -> None:
    formula = (
        "$$\n\\begin{align}\na_1 &amp;= b * c &lt; 3 \\\\ % a \\remark\nd &amp;\\text{ 5\\% of } e\n\\end{align}$$"
    )
    page = page_of(
        f'<p>Let <span class="math-container">{formula}</span> and <span class="math-container">$x_{{1}}^*$</span>.'
    )
    counts, (document,) = convert(tmp_path, page)
    assert (
        "$$ \\begin{align} a_1 &= b * c < 3 \\\\ d &\\text{ 5\\% of } e \\end{align}$$ and $x_{1}^*$." in document.text
    )
    assert counts["formulas"] == 2


def test_an_element_that_is_left_open_ends_with_its_post(tmp_path: Path) -> None:
    _, (document,) = convert(tmp_path, page_of("<ul><li><pre><code>open", "<p>b</p>"))
    assert "\n\n# Answer\n> 2 votes\nb\n\n---" in document.text
    _, (document,) = convert(tmp_path, page_of("a</article></p>", "<article>b</article>", "c"))
    assert "a\n\n# Answer\n> 2 votes\nb\n\n# Answer\n> 3 votes\nc" in document.text


def test_posts_without_text_are_counted(tmp_path: Path) -> None:
    counts, (document,) = convert(tmp_path, page_of("<p>a</p>", '<img src="x">', "<p>b</p>", tags=[]))
    assert document.text == "# Question\nTitle: How?\na\n\n# Answer\n> 3 votes\nb"
    assert counts["answers_without_text"] == 1
    counts, none = convert(tmp_path, page_of('<img src="x">', "<p>b</p>"), page_of("<p>a</p>"))
    assert (len(none), counts["rejected_empty"]) == (1, 1)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"extractor": "thread-9"}, "thread.extractor is 'thread-9', expected 'thread-1'"),
        ({"answer_template": "{answers}"}, r"thread.answer_template has \{answers\}, expected one of .*'answer'"),
        ({"answer_template": "{answer.__class__}"}, r"has \{answer\.__class__\}, expected"),
        ({"answer_template": "{answer!r}"}, r"has \{answer!r\}, expected"),
        ({"answer_template": "{answer:>9999999999}"}, r"has \{answer:>9999999999\}, expected"),
        ({"answer_template": "{}"}, r"has \{\}, expected one of"),
        ({"answer_template": "{answer"}, "is '{answer', which is no template .* Write {{ for a brace"),
        ({"answer_template": "A: {votes}"}, "is 'A: {votes}', without {answer}: its text would be lost"),
        ({"question_template": ""}, "is '', without {question}"),
    ],
)
def test_a_wrong_template_is_refused(tmp_path: Path, fields: dict[str, str], sentence: str) -> None:
    with pytest.raises(ThreadContentError, match=sentence):
        convert(tmp_path, page_of("a"), thread=ThreadContent(**fields))


def test_a_page_that_is_no_thread_is_refused(tmp_path: Path) -> None:
    for page in (page_of("a", question=None), page_of("a", answers=[{"id": 9}]), page_of("a", question=8)):
        with pytest.raises(
            Exception, match=r"The page 'dba\.stackexchange\.com/1' is no thread: it does not have the posts"
        ):
            convert(tmp_path, page)
    with pytest.raises(ExtractorError, match="wiki and thread are both given, expected one of them"):
        convert(tmp_path, page_of("a"), wiki=WikiContent())
