"""The models of a prefix by their scores: the newest complete result of each, perplexities beside, nothing private."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser_server import Browser, browsing
from stored_outputs_for_browsing import store_output


def store_scores(prefix: str, name: str, result: dict[str, Any], *, version: str = "abc123", age_s: int = 0) -> str:
    """An evaluation with this result, finished `age_s` seconds before the others."""
    return store_output(prefix, name, {}, version=version, result=result, age_s=age_s)


def accuracy(value: float, **more: Any) -> dict[str, Any]:
    return {"acc": value, "acc_stderr": 0.01, "instances": 400, **more}


def store_models(prefix: str) -> None:
    mmlu = {"mmlu": accuracy(0.4), "mmlu/law": accuracy(0.3)}
    store_scores(prefix, "evaluation/nano", {"scores": {"arc": accuracy(0.9)}}, version="def456", age_s=100)
    store_scores(prefix, "evaluation/nano", {"scores": {"arc": accuracy(0.5), **mmlu}})
    store_scores(prefix, "evaluation/small", {"scores": {"arc": accuracy(0.75, acc_norm=0.7, acc_norm_stderr=0.02)}})
    sets = {"wiki": {"bits_per_byte": 1.25, "bits_per_byte_stderr": 0.01, "texts": 40}}
    store_scores(prefix, "perplexity/nano", {"sets": sets})
    store_scores(prefix, "perplexity/small", {"sets": {"wiki": {"bits_per_byte": 1.5, "texts": 40}}})
    store_scores(prefix, "checkpoints/nano", {"scores": {"arc": accuracy(0.99)}})


def table(browser: Browser, **query: object) -> list[list[str]]:
    """The texts of the cells of each row, without what is known of the training data."""
    html = re.sub(r'<small class="training.*?</small>', "", browser.get("leaderboard", **query).html)
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


@pytest.fixture(params=["disk", "gcs"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    root = str(tmp_path) if request.param == "disk" else request.getfixturevalue("gcs_prefix")
    store_models(root)
    return root


def test_each_model_has_its_newest_scores_and_its_perplexity_the_best_first(prefix: str) -> None:
    with browsing(prefix) as browser:
        head, *rows = table(browser)
        assert head == [
            "model",
            "arc acc , best first",
            "wiki bits_per_byte ↓",
            "mmlu acc",
            "mmlu/law acc",
            "result, UTC",
        ]
        day = "2026-01-02 03:04"
        assert rows == [
            ["small evaluation , perplexity", "0.750 ±0.020", "1.500", "–", "–", day],
            ["nano evaluation , perplexity", "0.500 ±0.020", "1.250 ±0.020", "0.400 ±0.020", "0.300 ±0.020", day],
        ]
        assert [row[0].split()[0] for row in table(browser, by="wiki")[1:]] == ["nano", "small"], "less is better"
        assert table(browser, name="NAN", task="mmlu")[0] == [
            "model",
            "mmlu acc , best first",
            "mmlu/law acc",
            "result, UTC",
        ]
        assert len(table(browser, name="nan")) == 2
        page = browser.get("leaderboard")
        assert 'href="/output?path=evaluation%2Fsmall-abc123"' in page.html
        assert page.html.count("<b>") == 4
        assert "2 models, 4 tasks." in page.text


def test_a_score_has_the_questions_that_are_in_the_training_data(prefix: str) -> None:
    counts = {"questions": 400, "questions_contaminated": 12, "questions_not_searchable": 5}
    result = {"tasks": {"arc": counts}, "page": "contaminated_scores.html"}
    store_output(prefix, "contamination/nano", {}, reads=["evaluation/nano-abc123"], result=result)
    with browsing(prefix) as browser:
        page = browser.get("leaderboard")
    assert page.text.count("12 of 400 in training") == 1
    assert 'title="12 of 400 questions are in the training data, 5 cannot be searched"' in page.html
    assert page.text.count("nobody looked") == 3, "of the sentence, and of two groups that were not searched"


def test_an_output_that_is_gone_or_damaged_gives_way_to_the_one_before_it(tmp_path: Path) -> None:
    store_models(str(tmp_path))
    shutil.rmtree(tmp_path / "evaluation/nano-abc123")
    (tmp_path / "evaluation/small-abc123/.executor_info").write_text("{")
    with browsing(str(tmp_path)) as browser:
        rows = {row[0].split()[0]: row for row in table(browser)[1:]}
    assert rows["nano"][1:3] == ["1.250 ±0.020", "0.900 ±0.020"]
    assert rows["small"][2] == "–"


def test_hostile_names_and_values_are_inert_and_a_mistake_is_one_sentence(tmp_path: Path) -> None:
    scores = {"<script>": accuracy(0.5), "huge": {"acc": 10**400}, "text": {"acc": "x"}, "list": [1]}
    store_scores(str(tmp_path), "evaluation/a b<i>", {"scores": scores})
    store_scores(str(tmp_path), "evaluation/empty", {"scores": {}})
    store_scores(str(tmp_path), "evaluation/odd", {"scores": 3, "sets": 4})
    with browsing(str(tmp_path)) as browser:
        page = browser.get("leaderboard")
        assert "1 model, 1 task." in page.text
        assert "<script>" not in page.html.replace('<script src="/static/browse.js" defer></script>', "")
        missing = browser.get("leaderboard", by="arc")
        assert (missing.status, missing.sentence) == (404, "by is 'arc', expected one of the tasks '<script>'.")


def test_a_prefix_without_evaluations_says_what_makes_one(tmp_path: Path) -> None:
    with browsing(str(tmp_path)) as browser:
        assert "None. An evaluation of a model writes its scores: default_eval" in browser.get("leaderboard").text
