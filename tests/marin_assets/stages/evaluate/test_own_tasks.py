"""Tasks of one's own: each score has a name of its own, and a task with a mistake is refused by its name at once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from marin_assets.inference.journal import FOLDER
from marin_assets.stages.evaluate.lm_eval import EvaluationError, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.step.values import unwrap_versioned_value, versioned

pytestmark = pytest.mark.long  # imports and compiling

QUESTIONS = 24
HEAD = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
doc_to_text: "{{{{q}}}}"
"""
CHOICES = """
output_type: multiple_choice
doc_to_choice: "{{[a, b]}}"
doc_to_target: 0
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
GENERATED = """
output_type: generate_until
doc_to_target: "{{a}}"
generation_kwargs: {max_gen_toks: 6, until: ["."]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
FILTERED = f"""{GENERATED}
filter_list:
  - {{name: first-word, filter: [{{function: regex, regex_pattern: "(\\\\S+)"}}, {{function: take_first}}]}}
  - {{name: a-letter, filter: [{{function: regex, regex_pattern: "([a-z])"}}, {{function: take_first}}]}}
"""
F2 = "list: [{metric: f2, aggregation: mean, higher_is_better: true}, "
GROUP = """
group: both
task: [choices, words]
aggregate_metric_list: [{metric: acc, aggregation: mean, weight_by_size: true}]
"""


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    rows = [
        {"q": f"{n} + {n} is", "a": str(2 * n), "b": str(3 * n), "passage": f"Text {n // 3}"} for n in range(QUESTIONS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "group.yaml").write_text(GROUP)
    write_task(folder, "choices", CHOICES)
    write_task(folder, "words", CHOICES.replace("[a, b]", "['one ' + a, b]"))
    write_task(folder, "filtered", FILTERED)
    return folder


def write_task(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.yaml").write_text(HEAD.format(name=name, folder=folder) + text)


def evaluate(model_path: str, tasks_path: Path, output: Path, *tasks: str | EvalTask) -> dict[str, Any]:
    config = LmEvalConfig(model_path=model_path, output_path=str(output), include_path=str(tasks_path), tasks=tasks)
    output.mkdir(exist_ok=True)
    result = evaluate_with_lm_eval(unwrap_versioned_value(config))
    (output / ".executor_info").write_text(json.dumps({"name": output.name, "result": result}))
    return result


def rows_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]


def test_every_score_of_a_group_its_member_and_two_numbers_of_shots_has_a_row(
    model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    tasks = (EvalTask("both", 0), EvalTask("choices", 0, "mine"), EvalTask("choices", 2), EvalTask("both", 1, "few"))
    result = evaluate(model_path, tasks_path, tmp_path / "out", *tasks)
    labels = {"both", "choices_0shot", "words", "mine", "choices_2shot", "few", "few/choices", "few/words"}
    assert set(result["scores"]) == labels
    table = (tmp_path / "out/scores.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in table} == labels
    assert result["scores"]["mine"] == result["scores"]["choices_0shot"]
    questions = Counter(row["task"] for row in rows_of(tmp_path / "out"))
    assert questions == dict.fromkeys(labels - {"both", "few"}, QUESTIONS)
    contexts = {row["task"]: row["context"].count("is") for row in rows_of(tmp_path / "out")}
    assert {task: contexts[task] for task in ("choices_0shot", "few/words", "choices_2shot")} == {
        "choices_0shot": 1,
        "few/words": 2,
        "choices_2shot": 3,
    }
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert (results["model_source"], results["chat_template_sha"]) == ("jax", None)
    assert set(results["task_hashes"]) == labels - {"both", "few"}
    assert results["task_hashes"]["mine"] == results["task_hashes"]["choices_0shot"]
    members = results["group_subtasks"]
    assert members == {"both": ["choices_0shot", "words"], "few": ["few/choices", "few/words"]}
    compared = compare(tmp_path, tmp_path / "out", tmp_path / "out")
    assert compared["averaged"] == ["both", "choices_2shot", "few", "mine"]


def test_a_group_without_a_score_of_its_own_has_those_of_its_members(
    model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    code = "def half(items):\n    return 0.5\n"
    metric = "metric_list: [{metric: !function own_code.half, aggregation: mean, higher_is_better: true}]"
    (tasks_path / "own_code.py").write_text(code)
    write_task(tasks_path, "own", GENERATED.partition("metric_list")[0] + metric)
    (tasks_path / "plain.yaml").write_text("group: plain\ntask: [choices, own]\n")
    scores = evaluate(model_path, tasks_path, tmp_path / "out", EvalTask("plain", 0, "all"))["scores"]
    assert set(scores) == {"all/choices", "all/own"}
    assert scores["all/own"]["half"] == 0.5
    (tasks_path / "plain.yaml").unlink()
    (tasks_path / "own.yaml").unlink()


def test_each_filter_of_a_task_has_a_score_with_an_error_and_its_answer_is_shown(
    model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    scores = evaluate(model_path, tasks_path, tmp_path / "out", "filtered")["scores"]["filtered"]
    for name in ("exact_match_first-word", "exact_match_a-letter"):
        assert {name, f"{name}_stderr", f"{name}_lower95", f"{name}_upper95"} <= scores.keys()
    assert "exact_match_a-letter" in (tmp_path / "out/scores.csv").read_text()
    rows = rows_of(tmp_path / "out")
    assert len(rows) == QUESTIONS, "one for each question, not for each filter"
    for row in rows:
        assert row["exact_match_first-word"] == (row["extracted"]["first-word"] == row["target"])
        assert row["extracted"].keys() == {"first-word", "a-letter"}
    assert "<td>a-letter</td>" in (tmp_path / "out/samples.html").read_text()
    passages = Counter(row["passage"] for row in rows)
    assert set(passages.values()) == {3}
    compared = compare(
        tmp_path, tmp_path / "out", tmp_path / "out", metrics=versioned({"filtered": "exact_match,a-letter"})
    )
    [difference] = [json.loads(line) for line in (tmp_path / "compared/differences.jsonl").read_text().splitlines()]
    assert (difference["metric"], difference["questions"], difference["passages"]) == ("exact_match_a-letter", 24, 8)
    assert compared["worse"] == 0


def compare(folder: Path, base: Path, other: Path, **fields: Any) -> dict[str, Any]:
    output = folder / "compared"
    config = CompareModelsConfig(models={"base": str(base), "other": str(other)}, output_path=str(output), **fields)
    return compare_models(unwrap_versioned_value(config))


def functions(folder: Path, name: str, code: str) -> str:
    (folder / f"{name}_code.py").write_text(code)
    return f"process_results: !function {name}_code.score\n"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("no_metric", CHOICES.replace("c: acc", "c: accurracy"), "Task 'no_metric' has the metric 'accurracy' in its "),
        ("one_metric", CHOICES.replace("list: [", F2), "Task 'one_metric' has the metric 'f2' in its "),
        ("no_mean", CHOICES.replace("list: [", "list: [{metric: f2}, "), "Task 'no_mean' cannot be loaded (lm-eval's"),
        ("no_field", CHOICES.replace("b]", "c.d]"), "Task 'no_field' cannot be loaded"),
        ("no_text", CHOICES + 'description: "{{d}}"\n', "Task 'no_text' cannot make its requests: UndefinedError"),
        ("no_package", GENERATED, "Task 'no_package' cannot score an answer: ModuleNotFoundError"),
        ("no_match", GENERATED.replace("c: exact_match", "c: exact_mach"), "Task 'no_match' "),
        ("no_filter", FILTERED.replace("n: regex,", "n: regexp,"), "Task 'no_filter' cannot "),
        ("no_code", CHOICES.replace("target: 0", "target: !function absent_code.there"), "Task 'no_code' cannot be "),
        ("no_target", GENERATED.replace("{{a}}", "{{a.b.c}}"), "Task 'no_target' cannot be loaded"),
        ("no_goal", CHOICES.replace("target: 0", "target: 7"), "Task 'no_goal' "),
        ("raises", GENERATED, "Task 'raises' cannot score an answer: ValueError: no number in ''"),
    ],
)
def test_a_task_with_a_mistake_is_refused_by_its_name_before_an_answer(
    name: str, text: str, sentence: str, model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    code = {
        "no_package": "def score(doc, results):\n    import yy\n",
        "raises": "def score(doc, results):\n    raise ValueError(f'no number in {results[0]!r}')\n",
    }
    added = functions(tasks_path, name, code[name]) if name in code else ""
    write_task(tasks_path, name, text + added)
    with pytest.raises(EvaluationError) as refused:
        evaluate(model_path, tasks_path, tmp_path / "out", "choices", name)
    assert str(refused.value).startswith(sentence)
    assert not (tmp_path / "out" / FOLDER).exists()
    (tasks_path / f"{name}.yaml").unlink()


def test_a_task_without_a_number_as_score_fails(model_path: str, tasks_path: Path, tmp_path: Path) -> None:
    code = "def score(doc, results):\n    return {'exact_match': float('nan')}\n"
    write_task(tasks_path, "nan", GENERATED + functions(tasks_path, "nan", code))
    with pytest.raises(EvaluationError, match="Task 'nan' has no score that is a number: lm-eval reports "):
        evaluate(model_path, tasks_path, tmp_path / "out", "choices", "nan")
    assert not (tmp_path / "out/scores.csv").exists()


def test_a_language_that_is_drawn_is_the_same_each_time(model_path: str, tasks_path: Path, tmp_path: Path) -> None:
    """IFEval reads the language of an answer by langdetect, which draws."""
    code = "from langdetect import detect_langs\ndef score(doc, results):\n"
    code += "    return {'exact_match': detect_langs('the no la de que file')[0].prob}\n"
    write_task(tasks_path, "languages", GENERATED + functions(tasks_path, "languages", code))
    evaluate(model_path, tasks_path, tmp_path / "out", "languages")
    assert len({row["exact_match"] for row in rows_of(tmp_path / "out")}) == 1
    (tasks_path / "languages.yaml").unlink()


def test_a_solved_example_whose_true_choices_are_numbers_has_the_first_as_its_answer(
    model_path: str, tasks_path: Path, tmp_path: Path
) -> None:
    """As AGIEval's."""
    write_task(tasks_path, "numbers", CHOICES.replace("doc_to_target: 0", 'doc_to_target: "{{[1, 0]}}"'))
    evaluate(model_path, tasks_path, tmp_path / "out", EvalTask("numbers", 2), EvalTask("choices", 2))
    contexts = {row["task"]: row["context"] for row in rows_of(tmp_path / "out")}
    answers = [
        [int(line.split()[-1]) / int(line.split()[0]) for line in text.split("\n\n")[:2]] for text in contexts.values()
    ]
    assert answers == [[2, 2], [3, 3]]
    (tasks_path / "numbers.yaml").unlink()
