"""The text of a thread: the Markdown of its question and of its answers, in templates.

A page has each post in an element of its own, `<article id="post-4">`, in the order of metadata["question"] and
metadata["answers"]. Each body is converted alone, so an element that one leaves open ends with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from marin_assets.documents import Document
from marin_assets.stages.transform.html.thread_content import ThreadContent, ThreadContentError

FORMULA = re.compile(r"""(<span\b[^<>]*\bclass=["']math-container["'][^<>]*>)([^<]*)(</span>)""")
"""A formula as the sites mark it: TeX between dollars."""
COMMENT = re.compile(r"((?<!\\)(?:\\\\)*)%[^\n]*\n")
"""A comment of TeX. Lines are joined, so it would hide the rest of the formula."""


def thread_text(
    page: Document, fields: ThreadContent, to_markdown: Callable[[str], str | None], counts: Counter[str]
) -> str:
    """Return the text of a page, "" if its question has none. Adds to `counts` those of `thread_content.COUNTS`.

    Raises ThreadContentError for a page that is no thread.
    """
    metadata = page.metadata
    (_, question), *bodies = _bodies(page)
    text = _markdown(question, to_markdown, counts)
    if not text:
        return ""
    values = {name: metadata.get(name, "") for name in ("title", "date", "url", "site")}
    parts = [fields.question_template.format(question=text, votes=metadata.get("score", 0), **values)]
    for answer, body in bodies:
        text = _markdown(body, to_markdown, counts)
        counts["answers" if text else "answers_without_text"] += 1
        if text:
            parts.append(
                fields.answer_template.format(
                    answer=text,
                    votes=answer.get("score", 0),
                    date=answer.get("date", ""),
                    author=answer.get("author", ""),
                    accepted="accepted" if answer.get("accepted") else "",
                )
            )
    if tags := metadata.get("tags"):
        parts.append(fields.tags_template.format(tags=", ".join(tags)))
    return "".join(parts)


def _bodies(page: Document) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the facts and the HTML of each post, the question first."""
    question, answers = page.metadata.get("question"), page.metadata.get("answers")
    if not isinstance(question, int) or not isinstance(answers, list):
        raise _no_thread(page)
    posts = [{"id": question}, *answers]
    marks = [f'<article id="post-{post["id"]}">\n' for post in posts]
    at = page.text.find(marks[0])
    for post, mark, following in zip(posts, marks, [*marks[1:], ""], strict=True):
        end = page.text.find(following, at) if following else len(page.text)
        if at < 0 or end < 0:
            raise _no_thread(page)
        body = page.text[at + len(mark) : end].rstrip()
        yield post, body.removesuffix("</article>")
        at = end


def _no_thread(page: Document) -> ThreadContentError:
    return ThreadContentError(
        f"The page {page.id!r} is no thread: it does not have the posts of metadata 'question' and 'answers', expected "
        "a page of read_stackexchange. Correct pages_path, or leave out thread."
    )


def _markdown(body: str, to_markdown: Callable[[str], str | None], counts: Counter[str]) -> str:
    body, formulas = FORMULA.subn(lambda match: match[1] + COMMENT.sub(r"\1", match[2]) + match[3], body)
    counts["formulas"] += formulas
    return (to_markdown(body) or "").strip("\n")
