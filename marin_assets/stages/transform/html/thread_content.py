"""The fields of the text of a thread, a question with its answers, which `thread_text` composes."""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("thread-1",)
COUNTS = ("answers", "answers_without_text", "formulas")
QUESTION_NAMES = ("title", "question", "votes", "date", "url", "site")
ANSWER_NAMES = ("answer", "votes", "date", "author", "accepted")
TAGS_NAMES = ("tags",)
QUESTION_TEMPLATE = "# Question\nTitle: {title}\n{question}"
ANSWER_TEMPLATE = "\n\n# Answer\n> {votes} votes\n{answer}"
TAGS_TEMPLATE = "\n\n---\nTags: {tags}\n---"
"""The templates of Marin's transform_stackexchange, which draws whether the votes are before or after an answer."""


class ThreadContentError(MarinError, ValueError):
    """Fields of ThreadContent that cannot be used, or pages that are no threads: one sentence."""


@dataclass(frozen=True, kw_only=True)
class ThreadContent:
    """Compose the text of threads, whose pages are those of `read_stackexchange`."""

    extractor: str = versioned("thread-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    question_template: str = versioned(QUESTION_TEMPLATE)
    """The beginning of the text, of {title}, {question}, {votes}, {date}, {url} and {site}."""
    answer_template: str = versioned(ANSWER_TEMPLATE)
    """The part of each answer, of {answer}, {votes}, {date}, {author} and {accepted}: "accepted" or ""."""
    tags_template: str = versioned(TAGS_TEMPLATE)
    """The end of a text with tags, of {tags}, separated by ", "; "" leaves it out."""


def check_thread_content(fields: ThreadContent) -> None:
    """Raise ThreadContentError for unknown rules, an unknown name in a template, and a template without the text."""
    if fields.extractor not in EXTRACTORS:
        raise ThreadContentError(
            f"thread.extractor is {fields.extractor!r}, {expected_one_of(fields.extractor, EXTRACTORS)}"
        )
    _check("question_template", fields.question_template, QUESTION_NAMES, "question")
    _check("answer_template", fields.answer_template, ANSWER_NAMES, "answer")
    _check("tags_template", fields.tags_template, TAGS_NAMES, "")


def _check(field: str, template: str, names: tuple[str, ...], required: str) -> None:
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise ThreadContentError(
            f"thread.{field} is {template!r}, which is no template ({error}). Write {{{{ for a brace."
        ) from None
    for _, name, form, conversion in parts:
        if name not in names or form or conversion:
            shown = "".join((name or "", f"!{conversion}" if conversion else "", f":{form}" if form else ""))
            raise ThreadContentError(f"thread.{field} has {{{shown}}}, {expected_one_of(shown, names)}")
    if required and not any(name == required for _, name, _, _ in parts):
        raise ThreadContentError(
            f"thread.{field} is {template!r}, without {{{required}}}: its text would be lost. Add it."
        )
