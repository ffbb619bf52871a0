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


def test_what_is_cut_of_very_long_texts_is_counted_and_the_page_stays_small() -> None:
    line, lines = "x" * 5_000_000, "a\n" * 1_000_000
    hostile = "\ud83d\x00\u202e</pre></script><script>alert(1)</script>"
    rows = [question(n, 1, context=line + lines + hostile, choices=[line, lines + hostile]) for n in range(3)]
    written = {"task": "written", "doc_id": 3, "target": line, "context": hostile, "generated": lines}
    page, shown = articles([*rows, written])
    assert "the last 161 of 7,000,043 characters" in shown[0]
    assert "the first 2,000 of 5,000,000 characters" in shown[0]
    assert '<div class="muted">the first 119 of 2,000,000 characters</div>a\na' in shown[3], "60 lines"
    assert "<script" not in page
    assert "&lt;/pre&gt;&lt;/script&gt;" in shown[0]
    assert len(page) < 60_000


def test_of_very_many_choices_the_true_one_and_the_chosen_one_are_shown_with_the_first() -> None:
    choices = [f"choice {n} " * 1000 for n in range(10_000)]
    [article] = articles([question(0, 9_000, choices=choices, loglikelihoods=[-1.0] * 10_000, target=8_000)])[1]
    assert "the true ones, the chosen one and the first 40 of 10,000 choices" in article
    assert article.count("<tr>") == 42
    assert re.search(r"<td>true</td><td>.*choice 8000", article)
    assert re.search(r"<td>chosen</td><td>.*choice 9000", article)
    assert len(article) < 20_000


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
    assert f"{'x' * ANSWER_CHARACTERS}…</td><td>44</td>" in article
    assert f"the first {ANSWER_CHARACTERS} of {ANSWER_CHARACTERS + 2} characters" in article
    assert article.count("<td>wrong</td>") == SHOWN_ANSWERS - 1
    assert "and 2 more answers" in article
    assert "<td>true</td><td>42</td>" in article
