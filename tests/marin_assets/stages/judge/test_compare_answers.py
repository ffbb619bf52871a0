"""Answers in pairs, judged by rules whose win rates are known."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rule_judge import write_judge_folder
from running import wait_until

from marin_assets.documents import read_documents
from marin_assets.inference.engine import Engine
from marin_assets.inference.journal import FOLDER
from marin_assets.stages.judge.compare_answers import CompareAnswersConfig, compare_answers
from marin_assets.stages.judge.conversations import JudgeError
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.step.values import unwrap_versioned_value

Rule = Callable[[str], tuple[Engine, Path]]
Write = Callable[[str, list[Mapping[str, Any]]], str]
COUNT = 60


def row(number: int, answer: str | None, **fields: Any) -> dict[str, Any]:
    """The sum of two numbers, with an answer."""
    messages = [{"role": "user", "content": f"{number} + 1"}]
    messages += [] if answer is None else [{"role": "assistant", "content": answer}]
    return {"id": f"sum {number}", "messages": messages, **fields}


def judged(write: Write, judge_path: str, engine: Engine | None, mine: Any, theirs: Any, **fields: Any) -> Any:
    config = CompareAnswersConfig(
        answers_path=mine if isinstance(mine, str) else write("mine", mine),
        baseline_path=theirs if isinstance(theirs, str) else write("theirs", theirs),
        judge_path=judge_path,
        engine=engine,
        **{"output_path": str(Path(judge_path).parent / f"output-{random.random()}"), **fields},
    )
    return compare_answers(unwrap_versioned_value(config))


def sides(seed: int = 0, right: float = 0.8, other_right: float = 0.5) -> tuple[list[Any], list[Any]]:
    """Two models that are right at these shares of the sums, in words of any length."""
    drawn = random.Random(seed)

    def answer(number: int, share: float) -> str:
        result = number + 1 if drawn.random() < share else "nothing"
        return f"{'well, ' * drawn.randrange(30)}it is {result}."

    return tuple(  # type: ignore[return-value]
        [row(n, answer(n, share), category="odd" if n % 2 else "even") for n in range(100, 100 + COUNT)]
        for share in (right, other_right)
    )


def test_a_judge_that_prefers_right_answers_gives_their_win_rate(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path
) -> None:
    mine, theirs = sides()
    engine, _ = rule("correct")
    output = str(tmp_path / "output")
    result = judged(write, judge_path, engine, mine, theirs, output_path=output)

    def is_right(one: Any) -> bool:
        return "nothing" not in one["messages"][1]["content"]

    expected = [0.5 + 0.45 * (is_right(a) - is_right(b)) for a, b in zip(mine, theirs, strict=True)]
    mean = sum(expected) / COUNT
    error = (sum((value - mean) ** 2 for value in expected) / (COUNT - 1) / COUNT) ** 0.5
    assert result["win_rate"] == pytest.approx(mean, abs=1e-3)
    assert result["win_rate_stderr"] == pytest.approx(error, abs=1e-3)
    assert (result["wins"], result["losses"]) == (sum(v > 0.5 for v in expected), sum(v < 0.5 for v in expected))
    assert result["judged"] == COUNT
    assert (result["unreadable"], result["unjudged_share"]) == (0, 0)
    assert abs(result["first_preferred"] - 0.5) < 3 * result["first_preferred_stderr"]
    assert result["length_controlled_win_rate"] == pytest.approx(mean, abs=0.02)

    assert result["scores"].keys() == {"pairwise", "pairwise/even", "pairwise/odd"}
    table = list(csv.DictReader(Path(output, "scores.csv").read_text().splitlines()))
    assert [(one["task"], one["metric"]) for one in table[:2]] == [
        ("pairwise", "win_rate"),
        ("pairwise", "length_controlled_win_rate"),
    ]
    samples = [json.loads(line) for line in Path(output, "samples.jsonl").read_text().splitlines()]
    assert sum(one["win_rate"] for one in samples) / COUNT == pytest.approx(result["win_rate"])
    page = Path(output, "judgements.html").read_text()
    assert all(f"<h2>{title}" in page for title in ("Wins", "Losses", "Ties"))
    documents = list(read_documents(f"{output}/judgements.jsonl.zst"))
    assert len(documents) == COUNT
    assert {one.metadata["order"] for one in documents} == {"model_first", "baseline_first"}
    assert not Path(output, FOLDER, "calls").exists()


def test_length_control_brings_a_judge_of_length_alone_to_a_half(write: Write, rule: Rule, judge_path: str) -> None:
    drawn = random.Random(3)
    mine = [row(n, "m" * round(drawn.gauss(180, 60))) for n in range(COUNT)]
    theirs = [row(n, "b" * round(drawn.gauss(100, 60)) + "b") for n in range(COUNT)]
    result = judged(write, judge_path, rule("length")[0], mine, theirs)
    assert result["win_rate"] > 0.65
    assert result["length_correlation"] > 0.6
    assert result["length_controlled_win_rate"] == pytest.approx(0.5, abs=0.15)


def test_equal_models_have_a_half(write: Write, rule: Rule, judge_path: str) -> None:
    mine, _ = sides()
    engine, requests = rule("correct")
    result = judged(write, judge_path, engine, mine, write("theirs", mine))
    assert result["win_rate"] == result["length_controlled_win_rate"] == 0.5
    assert (result["equal_answers"], result["ties"], result["judgements"]) == (COUNT, COUNT, 0)
    assert not requests.read_text()


def test_a_bias_by_position_is_shown_and_both_orders_take_it_out(write: Write, rule: Rule, judge_path: str) -> None:
    mine, theirs = (write(name, side) for name, side in zip(("mine", "theirs"), sides(), strict=True))
    engine, _ = rule("first")
    drawn = judged(write, judge_path, engine, mine, theirs)
    both = judged(write, judge_path, engine, mine, theirs, both_orders=True)
    for result in (drawn, both):
        assert result["first_preferred"] == pytest.approx(0.8, abs=1e-3)
    assert abs(drawn["win_rate"] - 0.5) < 0.2
    assert both["win_rate"] == pytest.approx(0.5)
    assert both["order_agreement"] == 0
    assert both["judgements"] == 2 * drawn["judgements"]
    other = judged(write, judge_path, engine, mine, theirs, seed=1)
    assert other["win_rate"] != drawn["win_rate"]


def test_a_verdict_in_words_is_read_by_its_grammar(write: Write, rule: Rule, judge_path: str, tmp_path: Path) -> None:
    mine, theirs = sides()
    result = judged(
        write, judge_path, rule("correct")[0], mine, theirs, verdict="text", output_path=str(tmp_path / "output")
    )
    assert result["win_rate"] == result["discrete_win_rate"]
    assert result["wins"] + result["losses"] + result["ties"] == COUNT
    assert result["ties"] > 10
    words = {one.text for one in read_documents(f"{tmp_path}/output/judgements.jsonl.zst")}
    assert words == {"[[A]]", "[[B]]", "[[C]]"}


@pytest.mark.parametrize("verdict", ["logprobs", "text"])
def test_a_judge_without_verdicts_is_counted(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path, verdict: str
) -> None:
    mine, theirs = sides()
    result = judged(
        write, judge_path, rule("silent")[0], mine, theirs, verdict=verdict, output_path=str(tmp_path / "output")
    )
    assert result["unreadable"] == result["unreadable_no_verdict"] == COUNT
    assert (result["unreadable_share"], result["unjudged_share"], result["judged"]) == (1, 1, 0)
    assert "win_rate" not in result
    assert result["scores"] == {}
    assert "Nothing was judged" in Path(tmp_path, "output/judgements.html").read_text()


def test_prompts_beyond_the_window_and_missing_answers_are_counted(write: Write, rule: Rule, judge_path: str) -> None:
    mine, theirs = sides()
    mine[0], mine[1], theirs[2] = row(100, "x" * 5000), row(101, None), row(102, None)
    result = judged(write, judge_path, rule("correct")[0], mine, theirs)
    assert (result["too_long"], result["unanswered"], result["judged"]) == (1, 2, COUNT - 3)
    assert result["unjudged_share"] == pytest.approx(3 / COUNT)


SCRIPT = """
import json, sys
from marin_assets.inference.engine import Engine
from marin_assets.stages.judge.compare_answers import CompareAnswersConfig, compare_answers
config = json.loads(sys.argv[1])
engine = Engine(**{**config.pop("engine"), "options": ()})
compare_answers(CompareAnswersConfig(**config, engine=engine))
"""


def test_a_killed_judge_resumes_after_what_it_had(write: Write, rule: Rule, judge_path: str, tmp_path: Path) -> None:
    mine, theirs = sides()
    engine, requests = rule("correct")
    undisturbed = judged(write, judge_path, engine, mine, theirs, output_path=str(tmp_path / "undisturbed"))
    calls = len(requests.read_text().splitlines())
    config = CompareAnswersConfig(
        answers_path=str(tmp_path / "mine"),
        baseline_path=str(tmp_path / "theirs"),
        judge_path=judge_path,
        output_path=str(tmp_path / "killed"),
        engine=engine,
        save_every_s=0.0,
    )
    requests.write_text("")
    command = [sys.executable, "-c", SCRIPT, json.dumps(asdict(unwrap_versioned_value(config)))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: list(Path(tmp_path, "killed", FOLDER).glob("**/*.jsonl")), "saved answers", timeout_s=60)
        process.send_signal(signal.SIGKILL)
    assert list(Path(tmp_path, "killed", FOLDER).glob("**/*.jsonl"))
    requests.write_text("")
    again = compare_answers(unwrap_versioned_value(config))
    assert len(requests.read_text().splitlines()) < calls
    assert again == undisturbed
    for name in ("judgements.jsonl.zst", "samples.jsonl", "scores.csv", "judgements.html"):
        assert Path(tmp_path, "killed", name).read_bytes() == Path(tmp_path, "undisturbed", name).read_bytes()


@pytest.mark.parametrize(
    ("mine", "theirs", "sentence"),
    [
        ([row(1, "2")], [row(2, "3")], r"have 2 instructions that only one of them has, such as 'sum 1', expected"),
        ([row(1, "2"), row(1, "3")], [row(1, "2")], r"'sum 1' occurs twice below .*mine', the second time in row 2"),
        ([row(1, None)], [row(1, "2")], r"No conversation below .*mine' has an answer"),
        ([row(1, "2")], [{**row(2, "2"), "id": "sum 1"}], r"'sum 1' is '1 \+ 1' below .* and '2 \+ 1' below"),
        ([{"id": "a", "turns": ["x", "y"]}], [{"id": "a", "turns": ["x", "y"]}], "has an answer"),
        (
            [{**row(1, "2"), "messages": [*row(1, "2")["messages"], {"role": "user", "content": "more"}]}],
            [row(1, "2")],
            "has 2 turns, expected one",
        ),
        ([{"id": "a", "text": "b"}], [row(1, "2")], r"Row 1 of .* has \['id', 'text'\], expected messages, turns or"),
        ([{"id": "a", "messages": []}], [row(1, "2")], r"the roles \[\], expected user and assistant in turn"),
        ([], [row(1, "2")], "have no rows, expected instructions"),
    ],
)
def test_sides_that_do_not_fit_are_a_sentence(
    write: Write, judge_path: str, mine: Any, theirs: Any, sentence: str
) -> None:
    with pytest.raises(JudgeError, match=sentence):
        judged(write, judge_path, None, mine, theirs)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"prompt": "{instruction} {answer_a} {answer_b} {reference}"}, r"the field \{reference\}, expected one of"),
        ({"prompt": "{instruction} {answer_a}"}, r"has no \{answer_b\}"),
        ({"prompt": "{instruction"}, "cannot be read"),
        ({"prompt": "{instruction!r} {answer_a} {answer_b}"}, r"the field \{instruction!r\}"),
        ({"verdict": "logprob"}, "verdict is 'logprob', expected one of 'logprobs', 'text'. Did you mean 'logprobs'"),
        ({"least_mass": 1.5}, "least_mass=1.5"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"task": ""}, "task is ''"),
    ],
)
def test_settings_without_a_meaning_are_a_sentence(
    write: Write, judge_path: str, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JudgeError, match=sentence):
        judged(write, judge_path, None, [row(1, "2")], [row(1, "3")], **fields)


def test_a_judge_without_a_chat_template_is_a_sentence(write: Write, rule: Rule, tmp_path: Path) -> None:
    folder = write_judge_folder(tmp_path / "plain", chat_template=None)
    with pytest.raises(JudgeError, match="The tokenizer of the judge has no chat template, expected"):
        judged(write, folder, rule("correct")[0], [row(1, "2")], [row(1, "3")])


def test_a_brace_in_an_answer_is_text(write: Write, rule: Rule, judge_path: str, tmp_path: Path) -> None:
    engine, requests = rule("correct")
    judged(write, judge_path, engine, [row(1, "{answer_b} is 2")], [row(1, "{}")])
    assert all("{answer_b} is 2" in line and "{}" in line for line in requests.read_text().splitlines())


def test_judgements_of_two_models_are_compared_as_evaluations_are(
    write: Write, rule: Rule, judge_path: str, tmp_path: Path
) -> None:
    weak, theirs = sides(right=0.3)
    strong, _ = sides(right=1.0)
    baseline, engine = write("theirs", theirs), rule("correct")[0]
    outputs: dict[str, str] = {}
    for name, mine in {"weak": weak, "strong": strong}.items():
        outputs[name] = str(tmp_path / f"output of {name}")
        result = judged(write, judge_path, engine, write(name, mine), baseline, output_path=outputs[name])
        Path(outputs[name], ".executor_info").write_text(json.dumps({"name": name, "result": result}))
    config = CompareModelsConfig(models=outputs, output_path=str(tmp_path / "comparison"))
    compared = compare_models(unwrap_versioned_value(config))
    assert (compared["better"], compared["worse"], compared["missing"]) == (3, 0, 0)
    rows = [json.loads(line) for line in Path(tmp_path, "comparison/differences.jsonl").read_text().splitlines()]
    assert {row["task"]: row["questions"] for row in rows} == {
        "pairwise": COUNT, "pairwise/even": COUNT // 2, "pairwise/odd": COUNT // 2
    }  # fmt: skip
