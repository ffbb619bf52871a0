"""The scores of checkpoints over training: several trainings on one page, in tokens, with what is not evaluated yet."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from browser_server import Browser, browsing
from stored_checkpoints import learning_curve, store_checkpoint_scores, store_partition, store_training

STEPS = (20, 40, 60, 79)
OF_A_STEP = 16 * 128


def rows(browser: Browser, **query: object) -> list[list[str]]:
    """The texts of the cells of each row of the table of numbers."""
    table = browser.get("checkpoints", **query).html.partition('<table class="numbers">')[2].partition("</table>")[0]
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    ]


def accuracy(value: float) -> dict[str, dict[str, float]]:
    return {"arc": {"instances": 9, "acc": value, "acc_stderr": 0.01}}


@pytest.fixture(params=["disk", "gcs"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "disk" else request.getfixturevalue("gcs_prefix")


def test_each_task_has_a_line_for_each_training_over_its_tokens_and_a_row_for_each_checkpoint(prefix: str) -> None:
    nano, wide = store_training(prefix, "nano", STEPS), store_training(prefix, "wide", STEPS, train_batch_size=32)
    evaluations = [
        store_checkpoint_scores(prefix, nano, {step: accuracy(step / 100) for step in STEPS}),
        store_checkpoint_scores(prefix, wide, {step: accuracy(step / 200) for step in STEPS}),
        store_checkpoint_scores(
            prefix,
            nano,
            {20: {"wiki": {"bits_per_byte": 1.5, "bits_per_byte_stderr": 0.1, "texts": 3}}},
            kind="checkpoint_perplexity",
        ),
    ]
    with browsing(prefix) as browser:
        assert [text for text in evaluations if text in browser.get("checkpoints").html] == evaluations
        page = browser.get("checkpoints", path=evaluations)
        head, *body = rows(browser, path=evaluations)
        assert head == ["checkpoint", "tokens", "arc acc", "wiki bits_per_byte ↓"]
        assert [row[:2] for row in body][:4] == [
            ["nano step 20 evaluation , perplexity", f"{21 * OF_A_STEP:,}"],
            ["nano step 40 evaluation , perplexity not evaluated", f"{41 * OF_A_STEP:,}"],
            ["wide step 20 evaluation", f"{2 * 21 * OF_A_STEP:,}"],
            ["nano step 60 evaluation , perplexity not evaluated", f"{61 * OF_A_STEP:,}"],
        ]
        assert body[0][2:] == ["0.200 ±0.020", "1.500 ±0.196"]
        assert body[2][2:] == ["0.100 ±0.020", "–"]
        assert page.html.count("<circle") == 2 + 9, "of the legend, and of both charts"
        assert "3 without a result of checkpoint_perplexity: steps 40, 60, 79." in page.text
        assert 'href="/output?path=checkpoint_evaluation%2Fwide-abc123%2Fstep-0000079"' in page.html
        assert rows(browser, path=evaluations, task="wik")[0][2:] == ["wiki bits_per_byte ↓"]
        by_steps = [row[0].split()[:3] for row in rows(browser, path=evaluations, axis="steps")[1:]]
        assert by_steps[:2] == [["nano", "step", "20"], ["wide", "step", "20"]]
        assert "checkpoints?path=checkpoint_evaluation%2Fnano-abc123" in browser.get("output", path=evaluations[0]).html


def test_checkpoints_that_are_not_evaluated_are_said_and_shown(tmp_path: Path) -> None:
    training = store_training(str(tmp_path), "nano", [*STEPS, 100, 120])
    shutil.rmtree(tmp_path / training / "exports/step-0000120")
    (tmp_path / training / "exports/step-0000120").mkdir()
    below = store_checkpoint_scores(str(tmp_path), training, {step: accuracy(0.5) for step in (20, 40, 79)})
    store_partition(str(tmp_path), below, training, 60, {}, status="FAILED")
    with browsing(str(tmp_path)) as browser:
        page = browser.get("checkpoints", path=below)
        assert "nano: 5 checkpoints" in page.text, "an export that is not complete is none"
        assert "2 without a result of checkpoint_evaluation: steps 60, 100." in page.text
        states = {row[0]: row[2] for row in rows(browser, path=below)[1:]}
        assert states["step 60 evaluation failed"] == states["step 100 evaluation not evaluated"] == "–"
        assert (page.html.count('class="bridge"'), page.html.count('class="gap"')) == (1, 2)
        shutil.rmtree(tmp_path / below / "step-0000040")
        assert (
            "3 without a result of checkpoint_evaluation: steps 40, 60, 100."
            in browser.get("checkpoints", path=below).text
        ), "its marker is still there"


def test_tokens_follow_the_schedule_of_batches_and_without_them_the_axis_is_steps(tmp_path: Path) -> None:
    loop = {"batch_schedule": [[0, 4], [50, 8]], "train_seq_len": 10}
    training = store_training(str(tmp_path), "nano", STEPS, loop=loop)
    below = store_checkpoint_scores(str(tmp_path), training, {step: accuracy(0.5) for step in STEPS})
    unknown = store_training(str(tmp_path), "folder", STEPS, model={"path": "/models/x"})
    other = store_checkpoint_scores(str(tmp_path), unknown, {step: accuracy(0.5) for step in STEPS})
    with browsing(str(tmp_path)) as browser:
        assert [row[1] for row in rows(browser, path=below)[1:]] == ["840", "1,640", "2,880", "4,400"]
        page = browser.get("checkpoints", path=[below, other])
        assert "The tokens of folder are not known, so the axis is steps" in page.text
        assert "Scores of checkpoints over training steps" in page.text


def test_two_versions_of_one_training_are_two_lines_and_two_evaluations_of_it_too(tmp_path: Path) -> None:
    training = store_training(str(tmp_path), "nano", STEPS)
    scores = {step: accuracy(0.5) for step in STEPS}
    paths = [store_checkpoint_scores(str(tmp_path), training, scores, version=of) for of in ("aaa111", "bbb222")]
    with browsing(str(tmp_path)) as browser:
        text = browser.get("checkpoints", path=paths).text
    assert "nano (abc123, aaa111): 4 checkpoints" in text
    assert "nano (abc123, bbb222): 4 checkpoints" in text


def test_thirty_tasks_of_a_hundred_checkpoints_are_one_page_whose_records_are_read_once(tmp_path: Path) -> None:
    steps, tasks = range(100, 10_100, 100), [f"task_{number:02}" for number in range(30)]
    training = store_training(str(tmp_path), "big", steps)
    below = store_checkpoint_scores(str(tmp_path), training, learning_curve(tasks, steps))
    with browsing(str(tmp_path)) as browser:
        page = browser.get("checkpoints", path=below)
        assert page.html.count('<svg class="over"') == 30
        assert page.html.count("<tr data-row>") == 100
        assert len(page.body) < 900_000
        for record in (tmp_path / below).glob("*/.executor_info"):
            record.write_text("{")
        assert browser.get("checkpoints", path=below).body == page.body


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"path": "checkpoints/nano-abc123"}, "has no evaluations of checkpoints, expected a folder such as"),
        ({"path": "checkpoint_evaluation/x-abc123"}, "has no evaluation of a checkpoint. Evaluate one."),
        ({"path": [f"checkpoint_evaluation/m{n}-abc123" for n in range(9)]}, "at most 8 evaluations. Choose fewer."),
        ({"path": "../etc"}, "has '.' or '..' as a name."),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, query: dict[str, object], sentence: str) -> None:
    store_training(str(tmp_path), "nano", STEPS)
    with browsing(str(tmp_path)) as browser:
        answer = browser.get("checkpoints", **query)
    assert answer.status in (403, 404)
    assert sentence in answer.sentence


def test_hostile_names_and_values_are_inert(tmp_path: Path) -> None:
    training = store_training(str(tmp_path), "nano", STEPS, loop={"batch_schedule": "x"}, train_batch_size=-1)
    odd = {20: {"<script>": {"acc": 0.5, "chance": 7.0}, "huge": {"acc": 10**400}}, 40: {"list": [1]}}
    below = store_checkpoint_scores(str(tmp_path), training, odd)
    store_partition(str(tmp_path), below, training, 60, {"scores": 3})
    (tmp_path / below / "step-x").mkdir()
    with browsing(str(tmp_path)) as browser:
        page = browser.get("checkpoints", path=below)
        assert "4 checkpoints" in page.text
        assert "1 task." in page.text
        assert "<script>" not in page.html.replace('<script src="/static/browse.js" defer></script>', "")
        assert browser.get("checkpoints", path=below, axis="time").sentence.startswith("axis is 'time', expected")


def test_a_prefix_without_evaluations_of_checkpoints_says_what_makes_them(tmp_path: Path) -> None:
    with browsing(str(tmp_path)) as browser:
        assert "None. default_checkpoint_evals evaluates the checkpoints" in browser.get("checkpoints").text
