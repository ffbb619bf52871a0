"""Models by tasks: which differences are more than noise."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_server import browsing
from stored_evaluations import answers, store_evaluation

from marin_assets.browse.query import address
from marin_assets.defaults import (
    default_contamination,
    default_endpoint_eval,
    default_eval,
    default_model_comparison,
    default_train,
)
from marin_assets.inference.engine import Endpoint
from marin_assets.stages.report.compare_models import (
    CompareModelsConfig,
    compare_models,
    headline_of,
    is_lower_better,
    tasks_to_average,
)
from marin_assets.stages.report.models_by_tasks.cells import Cell, paired_difference
from marin_assets.stages.report.models_by_tasks.significance import ALPHA, false_discovery_rates, paired
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
        f"-0.2000 ± 0.1120 from the baseline, p = 0.002, 0.0039 corrected; {command}",
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
    head, mean, arc, mmlu, _, power = Table(html).rows
    assert [text for text, _ in head] == ["task, metric", "base", "<tuned>"]
    assert [text for text, _ in mean] == ["mean of 1 tasks", "0.750", "0.500"]
    assert arc == [("arc acc", "task"), ("0.750 ±0.042", ""), ("0.500 ±0.049", "worse")]
    assert mmlu[2][0].startswith("–")
    assert [text for text, _ in power] == ["arc acc", "400", "0.061", "14,754\n"]
    assert result["missing"] == 1
    rows = [json.loads(line) for line in (tmp_path / "out/scores.jsonl").read_text().splitlines()]
    assert {(row["model"], row["task"], row["metric"]) for row in rows} == {
        ("base", "arc", "acc"),
        ("base", "mmlu", "acc"),
        ("<tuned>", "arc", "acc"),
    }


def test_a_comparison_of_equal_models_marks_a_difference_in_one_of_twenty_pages_at_most() -> None:
    """1,000 comparisons of two equal models at 50 tasks of 60 questions, every second one of 15 passages."""
    drawn, marked = np.random.default_rng(3), 0
    for _ in range(1000):
        p_values = []
        for task in range(50):
            passages = [place // 4 if task % 2 else place for place in range(60)]
            of_passage = drawn.normal(size=60)[passages] if task % 2 else 0
            answers = of_passage + drawn.normal(size=(2, 60)) > 0
            tested = paired((answers[0].astype(int) - answers[1]).tolist(), passages)
            assert tested is not None
            p_values.append(tested.p)
        marked += min(false_discovery_rates(p_values)) <= ALPHA
    assert marked <= 50


def test_a_real_difference_is_shown_as_often_as_the_page_states() -> None:
    drawn, shown, smallest = np.random.default_rng(5), 0, 0.0
    for _ in range(1000):
        differences = drawn.normal(loc=0.1, size=785)  # (1.96 + 0.84)**2 / 0.1**2
        tested = paired(differences.tolist(), range(785))
        assert tested is not None
        shown += tested.p <= ALPHA
        smallest = tested.smallest
    assert smallest == pytest.approx(0.1, rel=0.1)
    assert shown == pytest.approx(800, abs=40)


def test_questions_that_share_a_passage_show_less_than_as_many_of_their_own(tmp_path: Path) -> None:
    models = {
        "base": write_evaluation(tmp_path / "base", {"race": [1] * 40 + [0] * 60}),
        "tuned": write_evaluation(tmp_path / "tuned", {"race": [1] * 60 + [0] * 40}),
    }
    assert compared(models, tmp_path / "own")["better"] == 1
    for folder in models.values():
        file = Path(folder, "samples.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps({**row, "passage": f"p{row['doc_id'] // 20}"}) + "\n" for row in rows))
    assert compared(models, tmp_path / "shared")["better"] == 0, "one passage of five is what differs"
    [row] = [json.loads(line) for line in (tmp_path / "shared/differences.jsonl").read_text().splitlines()]
    assert (row["questions"], row["passages"]) == (100, 5)
    assert "100 of 5 passages" in (tmp_path / "shared/comparison.html").read_text()


def test_the_page_has_the_questions_that_are_in_the_training_data_or_that_nobody_looked(tmp_path: Path) -> None:
    names = ("base", "tuned", "other", "llama")
    models = {name: write_evaluation(tmp_path / name, {"arc": [1, 0, 1], "mmlu": [1, 0]}) for name in names}
    counts = {"arc": {"questions": 3, "questions_contaminated": 1, "questions_not_searchable": 1}}
    contaminations = {}
    for name, not_searched in (("base", []), ("tuned", ["chats <b>"])):
        result = {"tasks": counts, "not_searched": not_searched, "page": "contaminated_scores.html"}
        record = {"name": name, "dependencies": [models[name]], "result": result}
        contaminations[name] = str(tmp_path / f"contamination-{name}")
        Path(contaminations[name]).mkdir()
        Path(contaminations[name], ".executor_info").write_text(json.dumps(record))
    compared(models, tmp_path / "out", contaminations=contaminations, not_on_record=("llama",), browser="http://b/")
    html = (tmp_path / "out/comparison.html").read_text()
    head, arc, mmlu = Table(html.partition("Questions in the training data")[2]).rows[:3]
    assert [text for text, _ in head] == ["task", *names]
    assert [text for text, _ in arc[1:]] == [
        "1 of 3", "1 of 3", "nobody looked", "its training data are not on record",
    ]  # fmt: skip
    assert mmlu[1][0] == "nobody looked"
    assert "1 of 3 questions are in the training data, 1 cannot be searched" in html
    assert "tuned was trained on more, which was not searched: chats &lt;b&gt;." in html
    page = address("file", path=f"{contaminations['base']}/contaminated_scores.html", page=1)
    assert f'href="http://b{escape(page)}"' in html
    compared(models, tmp_path / "none", not_on_record=("llama",))
    html = (tmp_path / "none/comparison.html").read_text()
    assert "base, tuned, other: nobody looked; llama: its training data are not on record." in html
    with pytest.raises(ReportError, match=r"The contamination of 'other' at '.*' is not of the evaluation '.*/other'"):
        compared(models, tmp_path / "wrong", contaminations={"other": contaminations["base"]})
    with pytest.raises(ReportError, match=r"contaminations names 'bsae', expected one of the models .*Did you mean"):
        compared(models, tmp_path / "wrong", contaminations={"bsae": contaminations["base"]})


def test_two_questions_show_nothing(tmp_path: Path) -> None:
    models = {
        "base": write_evaluation(tmp_path / "base", {"arc": [0, 0]}),
        "tuned": write_evaluation(tmp_path / "tuned", {"arc": [1, 1]}),
    }
    assert compared(models, tmp_path / "out")["better"] == 0


def test_a_metric_with_a_filter_is_compared_question_by_question_and_named_either_way(tmp_path: Path) -> None:
    models = {}
    for name, right in (("base", 200), ("tuned", 212)):
        folder = write_evaluation(tmp_path / name, {"gsm8k": [1] * right + [0] * (400 - right)})
        for file in (Path(folder, ".executor_info"), Path(folder, "samples.jsonl")):
            file.write_text(file.read_text().replace('"acc', '"exact_match_strict-match'))
        models[name] = folder
    assert compared(models, tmp_path / "out")["better"] == 1
    for metric in ("exact_match_strict-match", "exact_match,strict-match"):
        named = compared(models, tmp_path / metric, metrics=versioned({"gsm8k": metric}))
        assert named["better"] == 1


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["acc", "acc_norm"], "acc_norm"),
        (["exact_match_strict-match", "exact_match_strict-match_stderr", "f1"], "exact_match_strict-match"),
        (["instances", "f1_rouge_stderr", "f1_rouge"], "f1_rouge"),
        (["bleu"], None),
    ],
)
def test_the_metric_of_a_task_is_the_first_usual_one(names: list[str], chosen: str | None) -> None:
    assert headline_of(names) == chosen


def test_less_is_better_of_losses_and_errors_alone() -> None:
    lower = ("bits_per_byte", "word_perplexity", "eval_loss", "ter", "wer", "brier_score", "nll", "mse_none", "ece")
    higher = ("acc", "acc_norm", "f1", "bleu", "chrf", "mcc", "em", "answer_match", "character_overlap", "likelihood")
    assert all(map(is_lower_better, lower))
    assert not any(map(is_lower_better, higher))


def test_a_direction_that_the_evaluation_notes_is_taken(tmp_path: Path) -> None:
    models = {}
    for name, right in (("base", 300), ("tuned", 200)):
        models[name] = write_evaluation(tmp_path / name, {"toxicity": [1] * right + [0] * (400 - right)})
        (tmp_path / name / "scores.csv").write_text("task,metric,value,higher_is_better\ntoxicity,acc,0.5,False\n")
    result = compared(models, tmp_path / "out")
    assert (result["better"], result["worse"], result["macro"]) == (1, 0, {})
    assert "toxicity <small>acc ↓</small>" in (tmp_path / "out/comparison.html").read_text()


def test_a_group_is_averaged_once_and_a_loss_never() -> None:
    values = {"mmlu": 0.5, "mmlu/stem": 0.4, "mmlu_law": 0.6, "texts": 0.9, "piqa": 0.7, "bleu": 31.0}
    cells = {task: {"base": Cell(value=value)} for task, value in values.items()}
    lower = {task: task == "texts" for task in values}
    assert tasks_to_average(cells, lower, {"mmlu/stem": "mmlu", "mmlu_law": "mmlu"}) == ["mmlu", "piqa"]


def test_the_groups_of_an_evaluation_are_read_from_its_results(tmp_path: Path) -> None:
    answers = {"group": [1] * 30 + [0] * 10, "member": [1] * 30 + [0] * 10, "alone": [1, 1, 0, 0]}
    models = {name: write_evaluation(tmp_path / name, answers) for name in ("base", "tuned")}
    (tmp_path / "base/results.json").write_text(json.dumps({"group_subtasks": {"group": ["member"]}}))
    assert compared(models, tmp_path / "out")["averaged"] == ["group", "alone"]
    (tmp_path / "tuned/results.json").write_text("{")
    with pytest.raises(ReportError, match=r"tuned/results.json' is damaged \(.*\). Evaluate the model again"):
        compared(models, tmp_path / "damaged")


def test_a_group_of_groups_has_the_questions_of_all(tmp_path: Path) -> None:
    models = {}
    for name in ("base", "tuned"):
        accuracy = {"acc": 0.75, "acc_stderr": 0.02}
        answers = {"anatomy": [1] * 30 + [0] * 10, "physics": [1] * 60 + [0] * 20}
        models[name] = write_evaluation(tmp_path / name, answers, mmlu=accuracy, stem=accuracy)
    groups = {"group_subtasks": {"mmlu": ["stem"], "stem": ["anatomy", "physics"]}}
    (tmp_path / "base/results.json").write_text(json.dumps(groups))
    result = compared(models, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out/differences.jsonl").read_text().splitlines()]
    assert {row["task"]: row["questions"] for row in rows} == {"mmlu": 120, "stem": 120, "anatomy": 40, "physics": 80}
    assert result["averaged"] == ["mmlu"]


def test_a_group_is_compared_question_by_question_over_its_members(tmp_path: Path) -> None:
    models = {}
    for name, more in (("base", 0), ("tuned", 6)):
        answers = {f"mmlu/{part}": [1] * (100 + more) + [0] * (100 - more) for part in ("law", "stem")}
        accuracy, error = (100 + more) / 200, 0.025
        models[name] = write_evaluation(tmp_path / name, answers, mmlu={"acc": accuracy, "acc_stderr": error})
    result = compared(models, tmp_path / "out")
    differences = [json.loads(line) for line in (tmp_path / "out/differences.jsonl").read_text().splitlines()]
    [group] = [row for row in differences if row["task"] == "mmlu"]
    assert (group["questions"], group["outcome"]) == (400, "better")
    assert result["averaged"] == ["mmlu"]


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
    tested = paired_difference("acc", 0.5, mine, theirs)
    assert tested is not None
    assert tested.error == pytest.approx(0.5)
    assert paired_difference("acc", 0.4, mine, theirs) is None
    assert paired_difference("acc", 0.5, mine, {1: {"acc": 0}, 3: {"acc": 0}}) is None
    assert paired_difference("f1", 0.5, mine, theirs) is None


def test_the_default_reads_each_evaluation_and_may_refuse_regressions() -> None:
    models = [
        default_train(name, {}, LlamaSpec(), TrainLmConfig(components={}, tokenizer_path="")) for name in ("a", "b")
    ]
    evaluations = {model.name: default_eval(model, ["arc"]) for model in models}
    step = default_model_comparison("ab", evaluations, may_be_worse=False)
    assert [node.name for node in build_graph([step])[step].dependencies] == ["evaluation/a", "evaluation/b"]
    assert step.config.not_on_record == ()
    with_counts = default_model_comparison(
        "ab",
        evaluations,
        contaminations={
            models[0].name: default_contamination(
                evaluations[models[0].name], training_documents={"web": "/documents/web"}
            )
        },
    )
    assert "contamination/a" in [node.name for node in build_graph([with_counts])[with_counts].dependencies]
    endpoint = default_endpoint_eval("served", Endpoint(url="http://localhost:1/v1", model="m"), ["arc"])
    mixed = default_model_comparison("mixed", {**evaluations, "served": endpoint})
    assert mixed.config.not_on_record == ("served",)
    assert [expectation.describe() for expectation in step.expectations] == ["worse at most 0"]
