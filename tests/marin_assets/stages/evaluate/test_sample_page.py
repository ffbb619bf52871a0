"""The page of an evaluation's answers has each question, what was chosen or written, and whether that is right."""

from __future__ import annotations

import re
from typing import Any

from marin_assets.stages.evaluate.sample_page import (
    ANSWER_CHARACTERS,
    CONTEXT_CHARACTERS,
    SHOWN,
    SHOWN_ANSWERS,
    page_of_samples,
)


def question(doc_id: int, pick: int, **fields: Any) -> dict[str, Any]:
    row = {"task": "sky", "doc_id": doc_id, "target": 1, "context": "The sky is", "choices": ["green", "blue <b>"]}
    return {**row, "loglikelihoods": [-3.0, -1.5], "pick": pick, "acc": float(pick == 1), **fields}


def articles(rows: list[dict[str, Any]], **scores: dict[str, float]) -> tuple[str, list[str]]:
    page = page_of_samples(rows, scores).decode()
    return page, re.findall(r"<article.*?</article>", page, re.DOTALL)


def test_a_choice_is_marked_as_true_and_as_chosen() -> None:
    page, (right, wrong) = articles([question(0, 1), question(1, 0)], sky={"acc": 0.5, "acc_stderr": 0.1})
    assert "acc 0.5 ± 0.2" in page
    assert 'class="right"' in right
    assert "<td>true, chosen</td><td>blue &lt;b&gt;</td><td>-1.50</td>" in right
    assert 'class="wrong"' in wrong
    assert "<td>chosen</td><td>green</td>" in wrong


def test_the_target_may_be_a_text_or_several_places() -> None:
    assert "true, chosen</td><td>blue" in articles([question(0, 1, target="blue <b>")])[1][0]
    assert articles([question(0, 1, target=[0, 1])])[1][0].count("true") == 2


def test_a_written_answer_is_beside_the_true_one() -> None:
    row = {"task": "sums", "doc_id": 7, "target": "42", "context": "6 * 7 =", "generated": " 43", "exact_match": 0.0}
    [article] = articles([row])[1]
    assert "<td>written</td><td> 43</td>" in article
    assert "<td>true</td><td>42</td>" in article
    assert 'class="wrong"' in article
    assert 'class=""' in articles([{key: row[key] for key in row if key != "exact_match"}])[1][0]


def test_a_large_evaluation_shows_its_first_questions_and_the_ends_of_their_contexts() -> None:
    long = "a" * CONTEXT_CHARACTERS + "the end"
    page, shown = articles([question(n, 1, context=long) for n in range(SHOWN + 1)])
    assert len(shown) == SHOWN
    assert f"the first {SHOWN} of {SHOWN + 1} questions" in page
    assert "the end</pre>" in shown[0]
    assert "…a" in shown[0]


def test_scored_texts_are_no_answers() -> None:
    page, shown = articles([{"task": "texts", "doc_id": 0, "loglikelihood": -9.0}])
    assert shown == []
    assert "No task asks for an answer" in page


def test_of_several_answers_each_is_right_or_wrong_and_the_first_are_shown() -> None:
    def answer(text: str) -> dict[str, Any]:
        return {"generated": text, "extracted": {"number": text[-2:]}, "exact_match_number": float(text.endswith("42"))}

    answers = [answer("so 42"), answer("<43>"), *[answer("x" * ANSWER_CHARACTERS + "44")] * SHOWN_ANSWERS]
    row = {"task": "sums", "doc_id": 7, "target": "42", "context": "6 * 7 =", "generated": "so 42", "answers": answers}
    [article] = articles([row])[1]
    assert f"1 of {SHOWN_ANSWERS + 2} right" in article
    assert 'class="right"' in article
    assert "<td>right</td><td>so 42</td><td>42</td>" in article
    assert "<td>wrong</td><td>&lt;43&gt;</td>" in article
    assert f"<td>wrong</td><td>{'x' * ANSWER_CHARACTERS}…</td><td>44</td>" in article
    assert article.count("<td>wrong</td>") == SHOWN_ANSWERS - 1
    assert "and 2 more answers" in article
    assert "<td>true</td><td>42</td>" in article
