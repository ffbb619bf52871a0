"""Answers of several evaluations side by side: joined by the texts of the questions, counted, filtered, and inert."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browser_server import Answer, Browser, browsing
from stored_evaluations import answers, choice_row, store_evaluation, text_row
from stored_outputs_for_browsing import store_output

from marin_assets.browse.limits import Limits
from marin_assets.browse.query import address
from marin_assets.stages.evaluate.scores import sample_row
from marin_assets.stages.report.models_by_tasks.cells import scored_pairs


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with browsing(str(tmp_path)) as server:
        yield server


def ask(browser: Browser, *models: str, **values: Any) -> Answer:
    return browser.send("GET", address("models", model=list(models), **values))


def patterns(answer: Answer) -> dict[tuple[str, ...], int]:
    """The table of patterns: what each evaluation is -> questions."""
    table = answer.html.partition('<table class="patterns">')[2].partition("</table>")[0]
    counts = {}
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL):
        words = re.findall(r"</span> (right|wrong|partly|no score)</span>", row)
        number = re.search(r"<td>(?:<a[^>]*>)?([\d,]+)(?:</a>)?</td>", row)
        assert number is not None
        counts[tuple(words)] = int(number[1].replace(",", ""))
    return counts


def links_of_patterns(answer: Answer) -> list[tuple[str, int]]:
    """(address, questions) of each pattern."""
    table = answer.html.partition('<table class="patterns">')[2].partition("</table>")[0]
    return [
        (unescape(link), int(count.replace(",", "")))
        for link, count in re.findall(r'<a href="([^"]+)"[^>]*>([\d,]+)</a>', table)
    ]


def numbers(answer: Answer) -> list[int]:
    """The questions of a page, from 1."""
    return [
        int(number.replace(",", "")) for number in re.findall(r'data-open href="[^"]+">Question ([\d,]+)<', answer.html)
    ]


def test_the_pairs_of_right_and_wrong_are_those_of_the_paired_test(tmp_path: Path, browser: Browser) -> None:
    """The paired test joins by doc_id, the page by texts: on the same outputs both count the same pairs."""
    draw = random.Random(7)
    mine, theirs = ([draw.randrange(2) for _ in range(311)] for _ in range(2))
    rows = [answers(of) for of in (mine, theirs)]
    draw.shuffle(rows[1])
    paths = [store_evaluation(tmp_path, name, of) for name, of in zip(("a", "b"), rows, strict=True)]
    by_id = [{row["doc_id"]: row for row in of} for of in rows]
    pairs = Counter(scored_pairs("acc", by_id[0], by_id[1]))
    words = {1.0: "right", 0.0: "wrong"}
    answer = ask(browser, *paths)
    assert patterns(answer) == {(words[a], words[b]): count for (a, b), count in pairs.items()}
    assert sum(pairs.values()) == 311


def test_every_count_is_a_link_to_as_many_questions(tmp_path: Path, browser: Browser) -> None:
    draw = random.Random(8)
    paths = [store_evaluation(tmp_path, f"m{i}", answers([draw.randrange(2) for _ in range(130)])) for i in range(3)]
    answer = ask(browser, *paths)
    links = links_of_patterns(answer)
    assert len(links) == len(patterns(answer)) == 8
    assert sum(count for _, count in links) == 130
    seen: list[int] = []
    for link, count in links:
        page = browser.send("GET", link)
        assert len(numbers(page)) == count
        assert f"1 to {count} of {count} that match" in page.text
        seen += numbers(page)
    assert sorted(seen) == list(range(1, 131))


def test_a_page_has_a_hundred_questions_at_any_offset(tmp_path: Path, browser: Browser) -> None:
    paths = [store_evaluation(tmp_path, name, answers([1] * 250)) for name in ("a", "b")]
    first = ask(browser, *paths)
    assert numbers(first) == list(range(1, 101))
    next_page = re.search(r'rel="next" href="([^"]+)"', first.html)
    assert next_page is not None
    assert numbers(browser.send("GET", unescape(next_page[1]))) == list(range(101, 201))
    assert numbers(ask(browser, *paths, start=245)) == list(range(246, 251))
    assert "No question at 250 of 250" in ask(browser, *paths, start=250).text


def test_a_page_shows_question_expected_answer_and_the_answer_of_each(tmp_path: Path, browser: Browser) -> None:
    paths = [
        store_evaluation(tmp_path, "a", [text_row(2, " 4"), choice_row(5, 1)]),
        store_evaluation(tmp_path, "b", [text_row(2, " 22"), choice_row(5, 2)]),
    ]
    text = ask(browser, *paths).text
    assert "Q: 2 + 2? A: expected 4 A ✓ right 4 B ✗ wrong 22" in text
    assert "expected the second of 5 A ✓ right the second of 5 B ✗ wrong neither" in text
    question = ask(browser, *paths, task="arc", question=1).text
    assert "Question 2 of arc" in question
    assert "the second of 5 expected -1.00 chosen -6.00" in question
    assert "neither -7.00 -1.00 chosen" in question


def test_a_text_is_searched_within_questions_and_choices(tmp_path: Path, browser: Browser) -> None:
    paths = [store_evaluation(tmp_path, name, answers([1] * 120)) for name in ("a", "b")]
    assert numbers(ask(browser, *paths, text="number 11")) == [12, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120]
    assert numbers(ask(browser, *paths, text="the first of 77")) == [78]
    assert "No question at 0 of 0 that match" in ask(browser, *paths, text="acc").text


def test_the_same_doc_id_of_another_question_is_never_joined(tmp_path: Path, browser: Browser) -> None:
    other = [choice_row(number, 1, context=f"Another question {number}?") for number in range(20)]
    expects = [choice_row(number, 1, target=2) for number in range(20)]
    a = store_evaluation(tmp_path, "a", answers([1] * 20))
    for name, rows in (("b", other), ("c", expects)):
        answer = ask(browser, a, store_evaluation(tmp_path, name, rows))
        assert answer.status == 422
        assert answer.sentence.startswith("The evaluations have no question in common, by the texts of the questions")


def test_partly_shared_questions_are_shown_and_the_others_are_counted_as_left_out(
    tmp_path: Path, browser: Browser
) -> None:
    a = store_evaluation(tmp_path, "a", answers([1] * 30))
    b = store_evaluation(tmp_path, "b", [*answers([0] * 40)[10:], *answers([1] * 3, task="mmlu")])
    text = ask(browser, a, b).text
    assert "20 questions shared by all" in text
    assert "A, left out: answers whose question another evaluation does not have (10 of arc)." in text
    assert "B, left out: answers whose question another evaluation does not have (10 of arc, 3 of mmlu)." in text


def test_a_repeated_question_is_paired_one_to_one(tmp_path: Path, browser: Browser) -> None:
    same = {"context": "The same question?", "choices": ["x", "y", "z"]}
    a = store_evaluation(tmp_path, "a", [choice_row(number, 1, **same) for number in range(5)])
    b = store_evaluation(tmp_path, "b", [choice_row(number, number % 2, **same) for number in range(3)])
    answer = ask(browser, a, b)
    assert sum(patterns(answer).values()) == 3
    assert "1 question occurs several times" in answer.text
    assert "A, left out: answers whose question another evaluation does not have (2 of arc)" in answer.text


def test_partly_right_answers_and_answers_without_a_score_have_patterns_of_their_own(
    tmp_path: Path, browser: Browser
) -> None:
    rows = [text_row(number, "x", f1=score) for number, score in enumerate((0.0, 0.5, 1.0))]
    fewer = [text_row(number, "x", f1=1.0) for number in range(2)]
    fewer.append({key: value for key, value in text_row(2, "x").items() if key != "f1"})
    paths = [store_evaluation(tmp_path, "a", rows), store_evaluation(tmp_path, "b", fewer)]
    counts = patterns(ask(browser, *paths, metric="f1"))
    assert {pattern: count for pattern, count in counts.items() if count} == {
        ("wrong", "right"): 1,
        ("partly", "right"): 1,
        ("right", "no score"): 1,
    }


def test_a_row_of_lm_eval_with_one_text_shows_its_log_likelihood(tmp_path: Path, browser: Browser) -> None:
    sample = {
        "doc_id": 0,
        "target": " cat",
        "arguments": [("The", " cat")],
        "resps": [[(-2.5, False)]],
        "metrics": ["acc", "perplexity"],
        "acc": 0.0,
        "perplexity": -2.5,
    }
    rows = [{"task": "lambada", **sample_row(sample)}]
    paths = [store_evaluation(tmp_path, name, rows) for name in ("a", "b")]
    assert "✗ wrong -2.50 nats for the expected text" in ask(browser, *paths).text


def evaluation_without_questions(prefix: Path) -> str:
    rows = [{"task": "held_out_texts", "doc_id": number, "loglikelihood": -3.0} for number in range(3)]
    return store_evaluation(prefix, "losses", rows)


REFUSED = [
    ("missing", 404, "'missing' does not exist. Name the output of an evaluation"),
    ("perplexity-abc123", 422, "measures the loss of texts, in which nothing is right or wrong"),
    ("generated-abc123", 422, "continues texts, for which no answer is expected"),
    ("losses-abc123", 422, "its tasks score whole texts ('held_out_texts')"),
    ("running-abc123", 404, "the output is RUNNING, and an evaluation writes its answers last"),
    ("mmlu-abc123", 422, "The evaluations have no task in common"),
    ("a-abc123", 422, "is the same evaluation as"),
    ("a-abc123/samples.jsonl", 422, "is the same evaluation as"),
    ("empty-abc123", 422, "has no answer to a question: it is empty"),
    ("damaged-abc123", 422, "has no answer to a question: "),
    ("../a-abc123", 403, "has '.' or '..' as a name"),
    ("/etc/passwd", 403, "is outside of what is shown"),
]
"""Second evaluation, status, sentence."""


def test_a_second_output_that_cannot_be_compared_is_one_sentence(tmp_path: Path, browser: Browser) -> None:
    a = store_evaluation(tmp_path, "a", answers([1, 0]))
    evaluation_without_questions(tmp_path)
    store_evaluation(tmp_path, "mmlu", answers([1, 0], task="mmlu"))
    store_evaluation(tmp_path, "empty", [])
    damaged = tmp_path / store_evaluation(tmp_path, "damaged", answers([1, 0]))
    (damaged / "samples.jsonl").write_bytes(b'{"task": "arc", "context": \n\xff\xfe\n[1]\n')
    store_output(str(tmp_path), "running", {}, status="RUNNING")
    for other, function in (("perplexity", "measure_perplexity"), ("generated", "generate_text")):
        folder = tmp_path / store_output(str(tmp_path), other, {"rows.jsonl": [{"a": 1}]})
        record = json.loads((folder / ".executor_info").read_text())
        (folder / ".executor_info").write_text(json.dumps({**record, "fn_name": f"marin:{function}"}))
    for name, status, sentence in REFUSED:
        answer = ask(browser, a, name)
        assert answer.status == status
        assert sentence in answer.sentence


WRONG_VALUES: list[tuple[dict[str, str], str]] = [
    ({"task": "acr"}, "Did you mean 'arc'"),
    ({"metric": "ac"}, "Did you mean 'acc'"),
    ({"pattern": "rrr"}, "expected a letter of r, w, p, n or * for each of the 2 evaluations"),
    ({"question": "99"}, "Question 99 is not among the 2 that the address selects"),
    ({"start": "-1"}, "start is '-1', expected a number"),
]


def test_a_wrong_value_of_the_address_is_one_sentence(tmp_path: Path, browser: Browser) -> None:
    paths = [store_evaluation(tmp_path, name, answers([1, 0])) for name in ("a", "b")]
    for values, sentence in WRONG_VALUES:
        answer = ask(browser, *paths, **values)
        assert answer.status == 404
        assert sentence in answer.sentence


def test_a_truncated_file_has_fewer_answers_until_it_is_written_again(tmp_path: Path, browser: Browser) -> None:
    a = store_evaluation(tmp_path, "a", answers([1] * 50))
    b = store_evaluation(tmp_path, "b", answers([0] * 50))
    file = tmp_path / b / "samples.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 40])
    text = ask(browser, a, b).text
    assert "49 questions shared by all" in text
    assert "B, left out: 1 line that is no answer" in text
    file.write_bytes(whole)
    assert "50 questions shared by all" in ask(browser, a, b).text


def test_hostile_texts_are_inert_and_huge_ones_are_cut_and_named(tmp_path: Path, browser: Browser) -> None:
    evil = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    row = choice_row(0, 1, task=evil[:150], context=f"{'<b>' * 300_000} {evil}", choices=[evil, "y" * 300_000, "z"])
    paths = [store_evaluation(tmp_path, name, [{**row, evil: 1.0}]) for name in ("a", f"b/{evil.replace('/', '')}")]
    for answer in (ask(browser, *paths), ask(browser, *paths, question=0), ask(browser, *paths, choose=1)):
        assert answer.status == 200
        assert "<script>alert" not in answer.html
        assert "<img" not in answer.html
        assert "<b>" not in answer.html
        assert len(answer.body) < 200_000
    assert "the end of 900,056 characters" in ask(browser, *paths).text
    assert "cut of 300,000 characters" in ask(browser, *paths).text


def test_values_of_other_kinds_than_lm_eval_writes_are_shown_or_left_out(tmp_path: Path, browser: Browser) -> None:
    """Numbers beyond floats, texts for lists, lists for texts, half surrogates: no row ends the page."""
    odd: list[dict[str, Any]] = [
        {"loglikelihoods": [10**400, -1.0, True]},
        {"loglikelihoods": "text", "pick": 10**30},
        {"choices": "text", "target": [1, [2]]},
        {"choices": [], "target": None, "doc_id": [1]},
        {"choices": [["nested"], {"a": 1}, 3], "target": {"b": 2}, "pick": -1},
        {"choices": [str(place) for place in range(3000)], "target": 2999},
        {"acc": 10**400},
        {"generated": {"not": "a text"}},
        {"context": "\ud800 half"},
        {"context": 7},
        {"task": "x" * 300},
    ]
    rows = [choice_row(number, 1, acc_norm=1.0) | fields for number, fields in enumerate(odd)]
    paths = [store_evaluation(tmp_path, name, []) for name in ("a", "b")]
    for path in paths:
        (tmp_path / path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for metric in ("acc", "acc_norm"):
        answer = ask(browser, *paths, metric=metric)
        assert answer.status == 200
        for number in numbers(answer):
            assert ask(browser, *paths, metric=metric, question=number - 1).status == 200
    assert "lines that are no answers" in answer.text


@pytest.mark.long
def test_eight_evaluations_of_a_hundred_long_answers_stay_below_two_megabytes(tmp_path: Path, browser: Browser) -> None:
    rows = [text_row(number, "<&>" * 3000, context=f"{number} " + "<&>" * 3000) for number in range(100)]
    paths = [store_evaluation(tmp_path, f"m{i}", rows) for i in range(8)]
    answer = ask(browser, *paths)
    assert len(numbers(answer)) == 100
    assert len(answer.body) < 2_000_000
    assert "9 evaluations were named, expected 2 to 8" in ask(browser, *paths, paths[0]).sentence


def test_the_limits_of_a_request_hold(tmp_path: Path) -> None:
    paths = [store_evaluation(tmp_path, name, answers([1] * 300)) for name in ("a", "b")]
    with browsing(str(tmp_path), limits=Limits(bytes=10_000)) as server:
        answer = ask(server, *paths)
    assert answer.status == 503
    assert "its limit is 10,000" in answer.sentence


def test_the_page_of_an_evaluation_leads_to_those_of_the_same_task(tmp_path: Path, browser: Browser) -> None:
    a, b = (store_evaluation(tmp_path, name, answers([1, 0])) for name in ("a", "b"))
    store_evaluation(tmp_path, "mmlu", answers([1, 0], task="mmlu"))
    output = browser.get("output", path=a)
    link = re.search(r'<a href="(/models[^"]+)">Compare its answers with another evaluation', output.html)
    assert link is not None
    choice = browser.send("GET", unescape(link[1]))
    assert "1 complete evaluation of the same tasks" in choice.text
    [open_link] = re.findall(r'data-open href="([^"]+)"', choice.html)
    assert unescape(open_link) == address("models", model=[a, b])
    assert browser.send("GET", unescape(open_link)).status == 200
    assert "3 complete evaluations" in browser.get("models").text


def test_the_answers_of_an_output_that_is_not_complete_are_marked(tmp_path: Path, browser: Browser) -> None:
    a = store_evaluation(tmp_path, "a", answers([1, 0]))
    b = store_evaluation(tmp_path, "b", answers([1, 0]), status="FAILED")
    assert "B, b: Incomplete: the output is FAILED" in ask(browser, a, b).text


def test_no_file_changes_and_none_but_get_is_answered(tmp_path: Path, browser: Browser) -> None:
    paths = [store_evaluation(tmp_path, name, answers([1, 0])) for name in ("a", "b")]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ask(browser, *paths)
    assert browser.send("POST", address("models", model=paths)).status == 405
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
