"""Models by tasks: which differences are more than noise."""

from __future__ import annotations

import json
import random
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser_server import browsing
from stored_evaluations import answers, store_evaluation

from marin_assets.browse.query import address
from marin_assets.defaults import default_eval, default_model_comparison, default_train
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models, paired_error
from marin_assets.stages.report.records import ReportError
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value, versioned

QUESTIONS = 400


def write_evaluation(folder: Path, answers: dict[str, list[int]], **more: dict[str, float]) -> str:
    """An output of an evaluation with lm-eval, of which each question is answered rightly (1) or not (0)."""
    scores: dict[str, Any] = dict(more)
    rows = []
    for task, right in answers.items():
        accuracy = sum(right) / len(right)
        error = (accuracy * (1 - accuracy) / (len(right) - 1)) ** 0.5
        scores[task] = {"instances": len(right), "acc": accuracy, "acc_stderr": error, "acc_lower95": 0.0}
        rows += [{"task": task, "doc_id": number, "acc": float(one)} for number, one in enumerate(right)]
    folder.mkdir(parents=True)
    (folder / ".executor_info").write_text(json.dumps({"name": folder.name, "result": {"scores": scores}}))
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


def compared(models: dict[str, str], output: Path, **fields: Any) -> dict[str, Any]:
    return compare_models(unwrap_versioned_value(CompareModelsConfig(models=models, output_path=str(output), **fields)))


class Table(HTMLParser):
    """The cells of each row, and their classes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, str]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(("", dict(attrs).get("class") or ""))

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            text, kind = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data, kind)


def test_a_small_difference_on_the_same_questions_is_more_than_noise(tmp_path: Path) -> None:
    """Of 400 questions 12 are answered better and none worse: independent errors (0.035) would not show it."""
    base = [1] * 200 + [0] * 200
    models = {
        "base": write_evaluation(tmp_path / "base", {"arc": base}),
        "tuned": write_evaluation(tmp_path / "tuned", {"arc": [1] * 212 + [0] * 188}),
        "other": write_evaluation(tmp_path / "other", {"arc": [1] * 194 + [0] * 200 + [1] * 6}),
    }
    result = compared(models, tmp_path / "out")
    assert (result["better"], result["worse"], result["regressions"]) == (1, 0, {})
    (tmp_path / "tuned/samples.jsonl").unlink()
    assert compared(models, tmp_path / "unpaired")["better"] == 0


def evaluations_with_texts(prefix: Path) -> dict[str, str]:
    """Two evaluations with the texts of their questions, and the losses of whole texts."""
    loss = [{"task": "texts", "doc_id": number, "loglikelihood": -3.0, "bits_per_byte": 0.5} for number in range(3)]
    rows = {"base": [1] * 40 + [0] * 10, "tuned & more": [1] * 30 + [0] * 20}
    return {
        name: str(prefix / store_evaluation(prefix, f"evaluations/m{place}", [*answers(right), *loss]))
        for place, (name, right) in enumerate(rows.items())
    }


def test_each_number_names_the_command_that_shows_its_questions(tmp_path: Path) -> None:
    models = evaluations_with_texts(tmp_path)
    compared(models, tmp_path / "out")
    page = (tmp_path / "out/comparison.html").read_text()
    command = "marin browse --compare evaluations/m0-abc123 evaluations/m1-abc123 --task arc --metric acc"
    titles = re.findall(r'title="([^"]*)"', page)
    assert [title for title in titles if title.endswith(command)] == [
        command,
        f"-0.2000 ± 0.1120 from the baseline; {command}",
    ]
    assert "--task texts" not in page
    assert "<a " not in page


def test_each_number_links_to_its_questions_where_a_browser_has_an_address(tmp_path: Path) -> None:
    models = evaluations_with_texts(tmp_path)
    compared(models, tmp_path / "out", browser="https://browse.example.org/")
    page = (tmp_path / "out/comparison.html").read_text()
    links = [unescape(link) for link in re.findall(r'href="([^"]+)"', page)]
    target = address("models", model=list(models.values()), task="arc", metric="acc")
    assert links == [f"https://browse.example.org{target}"] * 2
    with browsing(str(tmp_path)) as browser:
        shown = browser.send("GET", target)
    assert "B evaluations/m1 m1-abc123 30 20 0.600 -0.2000 ± 0.1120" in shown.text


def test_what_is_worse_is_a_regression_and_lower_is_better_of_a_loss(tmp_path: Path) -> None:
    loss = {"bits_per_byte": 1.0, "bits_per_byte_stderr": 0.01}
    models = {
        "base": write_evaluation(tmp_path / "base", {"arc": [1] * 300 + [0] * 100}, texts=loss),
        "tuned": write_evaluation(
            tmp_path / "tuned", {"arc": [1] * 200 + [0] * 200}, texts={**loss, "bits_per_byte": 1.2}
        ),
    }
    result = compared(models, tmp_path / "out")
    assert result["regressions"] == {"tuned": ["texts", "arc"]}
    assert compared(models, tmp_path / "turned", baseline=versioned("tuned"))["better"] == 2


def test_the_page_has_every_score_its_mark_and_what_is_missing(tmp_path: Path) -> None:
    models = {
        "base": write_evaluation(tmp_path / "base", {"arc": [1] * 300 + [0] * 100, "mmlu": [1, 0, 1, 0]}),
        "<tuned>": write_evaluation(tmp_path / "tuned", {"arc": [1] * 200 + [0] * 200}),
    }
    result = compared(models, tmp_path / "out")
    html = (tmp_path / "out/comparison.html").read_text()
    head, mean, arc, mmlu = Table(html).rows
    assert [text for text, _ in head] == ["task, metric", "base", "<tuned>"]
    assert [text for text, _ in mean[1:]] == ["0.750", "0.500"]
    assert arc == [("arc acc", "task"), ("0.750 ±0.042", ""), ("0.500 ±0.049", "worse")]
    assert mmlu[2][0].strip() == "–"
    assert result["missing"] == 1
    rows = [json.loads(line) for line in (tmp_path / "out/scores.jsonl").read_text().splitlines()]
    assert {(row["model"], row["task"], row["metric"]) for row in rows} == {
        ("base", "arc", "acc"),
        ("base", "mmlu", "acc"),
        ("<tuned>", "arc", "acc"),
    }


def test_models_that_do_not_differ_are_marked_about_once_in_twenty(tmp_path: Path) -> None:
    drawn = random.Random(3)
    models = {
        name: write_evaluation(
            tmp_path / name, {f"task-{t}": [int(drawn.random() < 0.5) for _ in range(100)] for t in range(50)}
        )
        for name in map(str, range(6))
    }
    result = compared(models, tmp_path / "out")
    assert 3 <= result["better"] + result["worse"] <= 28, "of 250 differences"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"baseline": "bass"},
            "The baseline is 'bass', expected one of the models 'base', 'tuned'. Did you mean 'base'?",
        ),
        ({"metrics": {"arc": "acc_nrm"}}, "The task 'arc' has no metric 'acc_nrm', expected one of"),
    ],
)
def test_a_mistake_is_one_sentence(fields: Any, sentence: str, tmp_path: Path) -> None:
    models = {name: write_evaluation(tmp_path / name, {"arc": [1, 0, 1]}) for name in ("base", "tuned")}
    with pytest.raises(ReportError) as caught:
        compared(models, tmp_path / "out", **fields)
    assert sentence in str(caught.value)


def test_one_model_and_models_without_a_common_task_are_refused(tmp_path: Path) -> None:
    one = {"base": write_evaluation(tmp_path / "base", {"arc": [1, 0]})}
    with pytest.raises(ReportError, match="has 1 models, expected at least two"):
        compared(one, tmp_path / "out")
    two = {**one, "tuned": write_evaluation(tmp_path / "tuned", {"mmlu": [1, 0]})}
    with pytest.raises(ReportError, match="have no task in common"):
        compared(two, tmp_path / "out")


def test_rows_that_do_not_have_the_difference_say_nothing_of_its_error() -> None:
    mine, theirs = {1: {"acc": 1}, 2: {"acc": 0}}, {1: {"acc": 0}, 2: {"acc": 0}}
    assert paired_error("acc", 0.5, mine, theirs) == pytest.approx(0.5)
    assert paired_error("acc", 0.4, mine, theirs) is None
    assert paired_error("acc", 0.5, mine, {1: {"acc": 0}, 3: {"acc": 0}}) is None
    assert paired_error("f1", 0.5, mine, theirs) is None


def test_the_default_reads_each_evaluation_and_may_refuse_regressions() -> None:
    models = [
        default_train(name, {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path="")) for name in ("a", "b")
    ]
    evaluations = {model.name: default_eval(model, ["arc"]) for model in models}
    step = default_model_comparison("ab", evaluations, may_be_worse=False)
    assert [node.name for node in build_graph([step])[step].dependencies] == ["evaluation/a", "evaluation/b"]
    assert [expectation.describe() for expectation in step.expectations] == ["worse at most 0"]
