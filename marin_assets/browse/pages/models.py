"""Answers of several evaluations side by side: the shared questions, who is right, one question, or a choice of others.

The address has it all: `model` of each evaluation, `task`, `metric`, `pattern`, `text`, `start`, `count`, `question`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.models_choice import models_choice
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.answers.join import SharedQuestions, shared_questions
from marin_assets.browse.stored.answers.patterns import (
    ANY,
    DIFFER,
    RIGHT,
    WORDS,
    WRONG,
    ScoredQuestion,
    ScoredQuestions,
    choose,
    counts_of,
    score,
    totals_of,
)
from marin_assets.browse.stored.answers.samples import Samples, require_different, require_several, samples_at
from marin_assets.browse.stored.answers.texts import (
    answer_text,
    choices_of,
    expected_text,
    numbers_with,
    open_answers,
    question_text,
    read_answer,
)

COUNT, MOST = 100, 100
PAGE_BYTES = 32 * 1024**2
"""Bytes of the lines of a page. A page of larger answers ends early."""
QUESTION_CHARACTERS, ANSWERS_CHARACTERS = 700, 1200
"""Characters of a question in a list, and of all its answers together: 100 of them stay below 2 MB."""
WHOLE_CHARACTERS = 20_000
"""Characters of each text on the page of one question."""
MOST_PATTERNS, MOST_OPTIONS, NAMED = 40, 300, 6
LETTERS = "ABCDEFGH"
MARKS = {"r": "✓", "w": "✗", "p": "~", "n": "–"}


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The evaluations and the questions that the address selects."""

    samples: list[Samples]
    shared: SharedQuestions
    scored: ScoredQuestions
    chosen: list[ScoredQuestion]
    values: Mapping[str, Any]
    """The values of the address that select questions."""

    def link(self, **changed: Any) -> str:
        return address("models", **{**self.values, **changed})


def models(asked: Asked) -> Shown:
    texts = asked.query.texts("model")
    if len(texts) < 2 or asked.query.has("choose"):
        return models_choice(asked, texts)
    compared = _compare(asked, texts)
    return _question(asked, compared) if asked.query.has("question") else _list(asked, compared)


def _compare(asked: Asked, texts: list[str]) -> Compared:
    """Raises BrowseError, DocumentError."""
    require_several(texts)
    samples = [samples_at(asked.places, text) for text in texts]
    require_different(samples)
    shared = shared_questions([of.file for of in samples], [of.place.text for of in samples])
    names = ("task", "metric", "pattern", "text")
    values: dict[str, Any] = {"model": texts, **{name: asked.query.text(name) for name in names}}
    scored = score(shared, values["task"], values["metric"])
    chosen = choose(scored.questions, values["pattern"], len(samples))
    if values["text"]:
        numbers = {of.question.answers[0].number for of in chosen}
        having = set(numbers_with(samples[0].file, values["text"], numbers))
        chosen = [of for of in chosen if of.question.answers[0].number in having]
    return Compared(samples=samples, shared=shared, scored=scored, chosen=chosen, values=values)


def _list(asked: Asked, compared: Compared) -> Shown:
    start, count = asked.query.number("start"), asked.query.number("count", COUNT, most=MOST) or COUNT
    questions = _fitting(compared.chosen[start : start + count])
    end = start + len(questions)
    facts: dict[str, Any] = {
        **_facts(compared),
        "questions": _cards(compared, questions),
        "patterns": _patterns(compared),
        "is_differ": compared.values["pattern"] == DIFFER,
        "differ": sum(len(set(of.pattern)) > 1 for of in compared.scored.questions),
        "differ_link": compared.link(pattern=DIFFER),
        "all_link": compared.link(pattern=""),
        "start": start,
        "end": end,
        "total": len(compared.chosen),
        "previous": compared.link(start=max(start - count, 0), count=_count(count)) if start else "",
        "next": compared.link(start=end, count=_count(count)) if questions and end < len(compared.chosen) else "",
        "first": compared.link(count=_count(count)) if start else "",
        "is_short": 0 < len(questions) < min(count, len(compared.chosen) - start),
    }
    return Shown(template="models", facts=facts)


def _question(asked: Asked, compared: Compared) -> Shown:
    number = asked.query.number("question")
    place = next((i for i, of in enumerate(compared.chosen) if of.question.number == number), None)
    if place is None:
        raise NotThereError(
            f"Question {number:,} is not among the {len(compared.chosen):,} that the address selects. Open the list."
        )
    of, neighbours = compared.chosen[place], {}
    for name, at in (("previous", place - 1), ("next", place + 1)):
        if 0 <= at < len(compared.chosen):
            neighbours[name] = compared.link(question=compared.chosen[at].question.number)
    with ExitStack() as files:
        opened = [files.enter_context(open_answers(samples.file)) for samples in compared.samples]
        rows = [read_answer(raw, answer) for raw, answer in zip(opened, of.question.answers, strict=True)]
    links = [
        address("row", path=samples.file_text, row=answer.number)
        for samples, answer in zip(compared.samples, of.question.answers, strict=True)
    ]
    facts: dict[str, Any] = {
        **_facts(compared),
        **_card(of, rows[0], WHOLE_CHARACTERS),
        "answers": [_answer(of, i, row, WHOLE_CHARACTERS) for i, row in enumerate(rows)],
        "choices": choices_of(rows, of.metric, 1000),
        "metric_name": of.metric,
        "rows": links,
        "place": place,
        "total": len(compared.chosen),
        "previous": neighbours.get("previous", ""),
        "next": neighbours.get("next", ""),
        "list": compared.link(start=place // COUNT * COUNT or ""),
    }
    return Shown(template="models_question", facts=facts)


def _facts(compared: Compared) -> dict[str, Any]:
    """The facts of both pages: the evaluations, and what is not compared."""
    totals = totals_of(compared.scored.questions, len(compared.samples))
    models = [
        {
            "letter": LETTERS[i],
            "name": samples.name,
            "samples": samples,
            "total": totals[i],
            "right_link": compared.link(pattern=_only(i, RIGHT, compared)),
            "wrong_link": compared.link(pattern=_only(i, WRONG, compared)),
            "without": address(
                "models", model=[m for m in compared.values["model"] if m != compared.values["model"][i]]
            ),
            "left_out": _left_out(compared.shared.left_out[i]),
            "whole_texts": _left_out(compared.shared.indexes[i].whole_texts),
            "bad": compared.shared.indexes[i].bad,
        }
        for i, samples in enumerate(compared.samples)
    ]
    return {
        "models": models,
        "values": compared.values,
        "tasks": compared.shared.tasks[:MOST_OPTIONS],
        "task_count": len(compared.shared.tasks),
        "metrics": compared.scored.usable[:MOST_OPTIONS],
        "used_metrics": _phrase(list(dict.fromkeys(compared.scored.metrics.values()))),
        "without_metric": _phrase(compared.scored.without_metric),
        "shared": len(compared.shared.questions),
        "scored": len(compared.scored.questions),
        "repeated": compared.shared.repeated,
        "marks": MARKS,
        "words": WORDS,
        "choose_link": address("models", model=compared.values["model"], choose=1),
    }


def _only(place: int, letter: str, compared: Compared) -> str:
    return "".join(letter if i == place else ANY for i in range(len(compared.samples)))


def _patterns(compared: Compared) -> dict[str, Any]:
    counts = counts_of(compared.scored.questions, len(compared.samples))
    rows = [
        {
            "letters": pattern,
            "count": count,
            "share": count / len(compared.scored.questions),
            "words": _words(pattern),
            "link": compared.link(pattern=pattern),
            "is_chosen": pattern == compared.values["pattern"],
        }
        for pattern, count in counts[:MOST_PATTERNS]
    ]
    return {"rows": rows, "more": len(counts) - len(rows), "more_questions": sum(n for _, n in counts[MOST_PATTERNS:])}


def _words(pattern: str) -> str:
    """The pattern for people, if it is of right and wrong alone."""
    right = [LETTERS[i] for i, letter in enumerate(pattern) if letter == RIGHT]
    if not set(pattern) <= {RIGHT, WRONG}:
        return ""
    if not right or len(right) == len(pattern):
        return f"{'both' if len(pattern) == 2 else 'all'} {'right' if right else 'wrong'}"
    return f"only {' and '.join(right)} right" if len(right) < 3 else ""


def _cards(compared: Compared, questions: list[ScoredQuestion]) -> list[dict[str, Any]]:
    """The questions of a page, of which one row is in memory at a time."""
    characters = ANSWERS_CHARACTERS // len(compared.samples)
    cards: list[dict[str, Any]] = [{} for _ in questions]
    for place, samples in enumerate(compared.samples):
        with open_answers(samples.file) as raw:
            for card, of in zip(cards, questions, strict=True):
                row = read_answer(raw, of.question.answers[place])
                if place == 0:
                    card.update(_card(of, row, QUESTION_CHARACTERS))
                    card["link"] = compared.link(question=of.question.number)
                    card["answers"] = []
                card["answers"].append(_answer(of, place, row, characters))
    return cards


def _card(of: ScoredQuestion, row: Mapping[str, Any], characters: int) -> dict[str, Any]:
    doc_id = of.question.answers[0].doc_id
    return {
        "number": of.question.number,
        "task": of.question.task,
        "doc_id": "" if doc_id is None else short_text(doc_id, 60).text,
        "text": question_text(row, characters),
        "expected": expected_text(row, min(characters, 2000)),
    }


def _answer(of: ScoredQuestion, place: int, row: Mapping[str, Any], characters: int) -> dict[str, Any]:
    value, text = of.scores[place], answer_text(row, of.metric, characters)
    return {
        "letter": LETTERS[place],
        "mark": of.pattern[place],
        "text": text if text.text else ShortText("no text"),
        "is_empty": not text.text,
        "score": "" if value is None or value in (0, 1) else f"{value:.3f}",
    }


def _fitting(questions: list[ScoredQuestion]) -> list[ScoredQuestion]:
    """Those from the first on whose lines have PAGE_BYTES together; at least one."""
    size, fitting = 0, list[ScoredQuestion]()
    for of in questions:
        size += sum(answer.size for answer in of.question.answers)
        if fitting and size > PAGE_BYTES:
            break
        fitting.append(of)
    return fitting


def _left_out(counts: Mapping[str, int]) -> str:
    """A phrase such as "12 of 'arc', 3 of 'mmlu'"; empty for none."""
    return _phrase([f"{count:,} of {visible(task)}" for task, count in counts.items()])


def _phrase(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(name[:200] for name in names[:NAMED]) + more


def _count(count: int) -> int | str:
    return "" if count == COUNT else count
