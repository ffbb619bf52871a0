"""A training on rewards as a page: its curves, its counts, its waits, signs of a collapse, and rollouts to read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser_server import Answer, Browser, browsing
from stored_outputs_for_browsing import store_output
from stored_reward_trainings import GROUPS, REPLY, SIZE, STEPS, rollouts_of, store_reward_training, tokenizer_file
from tokenizers import Tokenizer

from marin_assets.browse.stored.reward_training import COMPARISON
from marin_assets.documents.parquet.write import write_parquet
from marin_assets.stages.train.rl.rollout import combine_steps, write_step

MADE = STEPS * GROUPS * SIZE
SUMS_RAISED = STEPS // 2
COMBINED = "rollouts/steps-0000000-0000099.parquet"


@pytest.fixture
def browser(tmp_path: Path) -> Any:
    with browsing(str(tmp_path)) as browser:
        yield browser


def titles(page: Answer) -> list[str]:
    return re.findall(r"<section><h2>(.*?)</h2>", page.html)


def counts(page: Answer) -> dict[str, list[int]]:
    """The numbers of the table of rollouts, by lesson."""
    table = page.html.partition('aria-label="Rollouts"')[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)]
    return {row[0]: [int(number) for number in row[1:]] for row in rows[1:]}


def hits(browser: Browser, address: str) -> int:
    """The rows that a link of the page leads to."""
    return browser.send("GET", address.replace("&amp;", "&")).html.count("<tr data-row>")


def test_a_page_has_the_curves_the_counts_and_rollouts_to_read(disk_or_gcs_prefix: str) -> None:
    below = store_reward_training(disk_or_gcs_prefix)
    with browsing(disk_or_gcs_prefix) as browser:
        assert f'href="/rewards?path={below.replace("/", "%2F")}"' in browser.get("output", path=below).html
        page = browser.get("rewards", path=below)
        assert page.status == 200
        assert titles(page) == [
            *("Mean reward", "pass@1", "pass@k", "Length of an answer", "Cut answers", "Groups without variance"),
            *("Entropy", "Divergence (k3)", "Ratio of likelihoods", "Held back", "Mismatch", "Staleness", "Waits"),
            *("Tokens a second", "Rollouts that are not used"),
        ]
        assert "12 of 12 steps have metrics" in page.text
        assert "waits for rollouts 40% of its time, and samplers wait for weights 5%: enlarge the sampling" in page.text
        assert counts(page) == {
            "calls": [STEPS * SIZE, STEPS * SIZE, 0, 0],
            "held_out": [STEPS * SIZE, 0, STEPS * SIZE, 0],
            "sums": [STEPS * SIZE, STEPS * SIZE - SUMS_RAISED, 0, SUMS_RAISED],
            "all": [MADE, MADE - STEPS * SIZE - SUMS_RAISED, STEPS * SIZE, SUMS_RAISED],
        }
        assert "0 updates 8 1 update 82" in page.text
        assert re.findall(r"Step (\d+)</h3>", page.html) == ["0", "3", "6", "8", "11"]
        assert page.html.count(f'<span class="reply">{REPLY}</span>') == 1 + 2 * 4, "of step 0 all rewards are equal"
        assert "Collapse" not in page.text


def test_each_count_leads_to_exactly_its_rollouts(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path))
    page = browser.get("rewards", path=below)
    links = dict(re.findall(r'<td><a href="(/search[^"]+)">([\d,]+)</a></td>', page.html))
    assert len(links) == 10
    for link, number in links.items():
        assert hits(browser, link) == min(int(number), 100)
    conditions = {"lesson": "sums", "fate": "kept", "of": "/reward", "at_least": 0.25, "at_most": 0.5, "step": 6}
    page = browser.get("search", path=f"{below}/rollouts", **conditions)
    assert re.findall(r"used (0\.\d+) \(sums, step 6\)", page.text) == ["0.5"]
    assert "/rollout?path=" in page.html
    assert browser.get("search", path=f"{below}/rollouts", step="x").status == 404


def test_a_training_under_way_has_a_page_of_the_steps_that_exist(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path), status="RUNNING", steps=5, is_combined=False, has_record=False)
    (tmp_path / below / ".executor_info").unlink()
    with (tmp_path / below / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "train/loss": 0.1}\n{"step": 6, "rl/rew')  # one has begun, and a kill has cut a line
    page = browser.get("rewards", path=below)
    assert page.status == 200
    assert "5 steps have metrics" in page.text
    assert "Incomplete: the output is RUNNING" in page.text
    assert counts(page)["all"][0] == 5 * GROUPS * SIZE
    assert "Replies of an environment are not marked: no tokenizer is shown here" in page.text
    assert f"seven{REPLY} eight of them" in page.text
    assert "rewards, policy, waits" in browser.get("output", path=below).text


@pytest.mark.parametrize("folder", ["rollouts", "plans"])
def test_a_training_without_a_step_has_a_page(folder: str, browser: Browser, tmp_path: Path) -> None:
    below = store_output(str(tmp_path), "checkpoints/new", {}, status="RUNNING", fn_name="")
    (tmp_path / below / folder).mkdir()
    page = browser.get("rewards", path=below)
    assert page.status == 200
    assert "No step has metrics yet. Rollouts No step has its rollouts yet." in page.text


def test_an_older_training_has_the_charts_of_its_metrics(browser: Browser, tmp_path: Path) -> None:
    page = browser.get("rewards", path=store_reward_training(str(tmp_path), is_old=True))
    assert "pass@1" not in titles(page)
    assert "Mean reward" in titles(page)
    assert "It is older than the metrics pass@1 and pass@k" in page.text


def test_damaged_parts_leave_a_sentence_and_the_others(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path), is_combined=False)
    table = tmp_path / below / "rollouts/step-0000003.parquet"
    table.write_bytes(table.read_bytes()[:200])
    page = browser.get("rewards", path=below)
    assert "step-0000003.parquet' is not valid parquet" in page.text
    assert "Mean reward" in titles(page)
    assert counts(page) == {}, "counts that do not add up are not shown"
    assert re.findall(r"Step (\d+)</h3>", page.html) == ["0", "2", "6", "9", "11"], "of the others"
    (tmp_path / below / "metrics.jsonl").write_text('{"step": 0}\n{"step": \n')
    page = browser.get("rewards", path=below)
    assert page.status == 200
    assert "The metrics cannot be read" in page.text
    assert "No step has metrics yet" in page.text


def test_a_kill_while_tables_are_combined_counts_nothing_twice(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path))
    write_step(str(tmp_path / below), 3, rollouts_of(3, Tokenizer.from_buffer(tokenizer_file())))
    assert counts(browser.get("rewards", path=below))["all"][0] == MADE
    combine_steps(str(tmp_path / below), STEPS)
    assert counts(browser.get("rewards", path=below))["all"][0] == MADE


def test_a_collapse_is_a_sentence(browser: Browser, tmp_path: Path) -> None:
    def falls(step: int) -> dict[str, float]:
        return {"rl/reward": 1.0 if step < 5 else 0.1, "train/entropy": 0.5 / 4**step, "train/k3_of_sampler": step / 10}

    below = store_reward_training(str(tmp_path), changes=falls)
    page = browser.get("rewards", path=below)
    assert "Collapse: The mean reward has fallen to 0.1, by more than half of its best, 1 at step 4" in page.text
    assert "Collapse: The entropy is" in page.text
    assert "Collapse: The divergence from the weights that sampled (k3) is 0.9 nats a token" in page.text


def test_several_trainings_are_laid_over_one_another(browser: Browser, tmp_path: Path) -> None:
    first, second = (store_reward_training(str(tmp_path), name=name) for name in ("first", "second"))
    page = browser.get("rewards", path=[first, second])
    assert "What 2 trainings learn from rewards" in page.text
    chart = page.html.partition("<h2>Mean reward</h2>")[2].partition("</section>")[0]
    assert chart.count("<polyline") == 2
    assert first in page.text
    assert second in page.text
    runs = {name: str(tmp_path / below) for name, below in (("a", first), ("b", second))}
    comparison = store_output(
        str(tmp_path), "comparisons/both", {}, fn_name=COMPARISON, config={"runs": {**runs, "c": "/elsewhere"}}
    )
    address = urlencode({"path": [first, second]}, doseq=True).replace("&", "&amp;")
    assert f'href="/rewards?{address}"' in browser.get("output", path=comparison).html
    other = store_output(str(tmp_path), "checkpoints/other", {}, fn_name="toy:write")
    assert browser.get("rewards", path=[first, other]).sentence == (
        f"{other!r} is no training on rewards. Open the output of a step of default_rl."
    )
    assert "expected 1 to 8 trainings" in browser.get("rewards").sentence


def test_a_rollout_has_its_tokens_by_probability_and_mask_and_its_group(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path))
    path, last = f"{below}/{COMBINED}", (STEPS - 1) * GROUPS * SIZE
    page = browser.get("rollout", path=path, row=last + 2)
    tokenizer = Tokenizer.from_buffer(tokenizer_file())
    sizes = [len(tokenizer.encode(text).ids) for text in (" seven", REPLY, " eight of them")]
    tokens = page.html.partition('<p class="tokens"')[2].partition("</p>")[0]
    assert tokens.count('class="token reply"') == sizes[1]
    assert len(re.findall(r'class="token lp\d"', tokens)) == sizes[0] + sizes[2]
    assert 'log-probability -0.050 (0.95)">' in tokens
    assert re.findall(r"(\d+(?: \(this\))?) ([\d.]+) (stop|length)", page.text.partition("Its group")[2]) == [
        (str(last), "0", "length"),
        (str(last + 1), "0.9167", "stop"),
        (f"{last + 2} (this)", "1.833", "stop"),
        (str(last + 3), "2.75", "stop"),
    ]
    row = browser.get("row", path=path, row=last + 2)
    assert "Its tokens and its group" in row.text
    assert "is no rollout" in browser.get("rollout", path=path, row=10_000).sentence


def test_values_of_strangers_are_inert(browser: Browser, tmp_path: Path) -> None:
    below = store_reward_training(str(tmp_path), is_combined=False, steps=1)
    [first, *_] = rollouts_of(0, Tokenizer.from_buffer(tokenizer_file()))
    evil = "<script>alert(1)</script>"
    row = {**vars(first), "text": evil, "lesson": evil, "prompt": evil, "answer": evil, "example": "{}"}
    lists = {"prompt_ids": "[1]", "ids": "[-1, 99999999999]", "logprobs": "[NaN, {}]", "mask": "[[[", "note": evil}
    write_parquet(str(tmp_path / below / "rollouts/step-0000001.parquet"), [{**row, **lists, "step": 1}])
    write_parquet(str(tmp_path / below / "rollouts/step-0000002.parquet"), [{"id": "a", "step": "x"}])
    metrics = {"step": 7, "rl/reward": 1e308, f"rl/reward/{evil}": 1, "train/entropy": "x", "rl/wait_share": None}
    with (tmp_path / below / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(metrics) + "\n")
    for page in (
        browser.get("rewards", path=below),
        browser.get("rollout", path=f"{below}/rollouts/step-0000001.parquet", row=0),
        browser.get("search", path=f"{below}/rollouts", lesson=evil),
    ):
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert "&lt;script&gt;" in page.html
    write_parquet(str(tmp_path / below / "rollouts/step-0000003.parquet"), [{**row, **lists}, {**row, "used": None}])
    assert "Without its group: " in browser.get("rollout", path=f"{below}/rollouts/step-0000003.parquet", row=0).text
    assert "do not fit" in browser.get("rollout", path=f"{below}/rollouts/step-0000001.parquet", row=0).text
    assert browser.get("rollout", path=f"{below}/rollouts/step-0000002.parquet", row=0).status == 404
    assert "step-0000002.parquet' has no column" in browser.get("rewards", path=below).text
