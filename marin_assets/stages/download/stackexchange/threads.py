"""The posts of one thread as a page: a document whose text is HTML.

    <h1>How do I read a plan?</h1>
    <article id="post-4">
    <p>body of the question</p>
    </article>
    <article id="post-5">
    <p>body of an answer</p>
    </article>

metadata["question"] and metadata["answers"] have the ids of the posts in this order, so each body can be taken out.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from marin_assets.documents import Document
from marin_assets.stages.download.stackexchange.posts import Post

ORDERS: dict[str, Callable[[Post, Post], tuple[int, ...]]] = {
    "score": lambda question, answer: (-answer.score, answer.id),
    "accepted_first": lambda question, answer: (answer.id != question.accepted, -answer.score, answer.id),
    "date": lambda question, answer: (answer.id,),
}
"""By name, the key by which the answers of a question are sorted. Ids grow with time."""
REASONS = (
    "duplicate",
    "orphan",
    "question_rejected",
    "low_score",
    "too_many_answers",
    "too_few_answers",
    "thread_too_large",
)


@dataclass(frozen=True, kw_only=True)
class ThreadRules:
    """Rules by which a thread becomes a page."""

    site: str
    source: str
    max_answers: int | None
    min_answers: int
    order: str
    max_page_bytes: int


def pages_of(posts: Iterable[Post], rules: ThreadRules, reject: Callable[[str, int], None]) -> Iterator[Document]:
    """Yield a page for each thread of posts, which are sorted by thread. `reject` gets a reason and a number of posts.

    At most `max_page_bytes` of a thread are held.
    """
    for _, thread in groupby(posts, key=lambda post: post.thread):
        page = _page(_Thread(thread, rules, reject), rules, reject)
        if page is not None:
            yield page


class _Thread:
    """The first posts of each id."""

    def __init__(self, posts: Iterable[Post], rules: ThreadRules, reject: Callable[[str, int], None]) -> None:
        self.question: Post | None = None
        self.answers: list[Post] = []
        self.count = 0
        """Answers, also those that are not held."""
        size, last = 0, -1
        for post in posts:
            if not post.is_answer and self.question is None:
                self.question = post
            elif not post.is_answer or post.id == last:
                if not post.rejected:
                    reject("duplicate", 1)
                continue
            else:
                last = post.id
                self.count += 1
                if size <= rules.max_page_bytes and self.question is not None and not self.question.rejected:
                    self.answers.append(post)
            size += len(post.body.encode())
        self.is_too_large = size > rules.max_page_bytes


def _page(thread: _Thread, rules: ThreadRules, reject: Callable[[str, int], None]) -> Document | None:
    question = thread.question
    if question is None:
        reject("orphan", thread.count)
        return None
    if question.rejected:
        reject("question_rejected", thread.count)
        return None
    reason = (
        "thread_too_large" if thread.is_too_large else "too_few_answers" if thread.count < rules.min_answers else ""
    )
    if reason:
        reject(reason, 1)
        reject("question_rejected", thread.count)
        return None
    key = ORDERS[rules.order]
    answers = sorted(thread.answers, key=lambda answer: key(question, answer))[: rules.max_answers]
    reject("too_many_answers", thread.count - len(answers))
    return _document(question, answers, rules)


def _document(question: Post, answers: list[Post], rules: ThreadRules) -> Document:
    posts = [question, *answers]
    articles = "\n".join(f'<article id="post-{post.id}">\n{post.body}\n</article>' for post in posts)
    metadata: dict[str, Any] = {
        "url": f"https://{rules.site}/q/{question.id}",
        "title": question.title,
        "date": question.date,
        "license": list(dict.fromkeys(post.license for post in posts if post.license)),
        "authors": list(dict.fromkeys(_author(post, rules.site) for post in posts if post.author)),
        "score": question.score,
        "tags": list(question.tags),
        "site": rules.site,
        "question": question.id,
        "answers": [
            {
                "id": answer.id,
                "score": answer.score,
                "accepted": answer.id == question.accepted,
                "date": answer.date,
                "author": _author(answer, rules.site),
                "license": answer.license,
            }
            for answer in answers
        ],
    }
    return Document(
        id=f"{rules.site}/{question.id}",
        text=f"<h1>{html.escape(question.title, quote=False)}</h1>\n{articles}\n",
        source=rules.source,
        metadata=metadata,
    )


def _author(post: Post, site: str) -> str:
    """The address of the user, or the name of one whose account is gone."""
    return f"https://{site}/users/{post.author}" if post.author.lstrip("-").isdecimal() else post.author
