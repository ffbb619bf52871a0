"""Sampled answers: several to each question, each with a seed of its own, and the scores over them."""

from __future__ import annotations

import csv
import json
import math
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from marin_assets import output_path_of
from marin_assets.defaults import default_download, default_eval
from marin_assets.inference.engine import JAX, Engine
from marin_assets.inference.journal import FOLDER
from marin_assets.stages.evaluate.lm_eval import EvaluationError, HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.stages.report.compare_models import CompareModelsConfig, compare_models
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value, versioned
from marin_resources.wire.config_json import encode

TASK = """
task: {name}
output_type: generate_until
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}
test_split: test
generation_kwargs: {settings}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
{more}
"""
FILTERS = """filter_list:
  - name: first-letter
    filter: [{function: regex, regex_pattern: "([a-z])"}, {function: take_first}]
  - name: voted
    filter: [{function: regex, regex_pattern: "([a-z])"}, {function: majority_vote}, {function: take_first}]
"""
GREEDY = '{do_sample: false, max_gen_toks: 4, until: ["."]}'
SAMPLED = '{do_sample: true, temperature: 1.5, top_k: 40, top_p: 0.95, max_gen_toks: 4, until: ["."]}'
TASKS = {
    "greedy": (GREEDY, ""),
    "greedy_letters": (GREEDY, FILTERS),
    "sampled": (SAMPLED, "repeats: 5\n" + FILTERS),
    "alike": (SAMPLED, "repeats: 5\n" + FILTERS),
    "equal": (GREEDY, "repeats: 5"),
    "penal": ("{do_sample: true, temperature: 0.5, repetition_penalty: 1.2, until: []}", ""),
    "typo": ("{do_sample: true, temprature: 0.5, until: []}", ""),
    "penalized": ("{do_sample: false, presence_penalty: 1.0, until: []}", ""),
    "beams": ("{num_beams: 4, until: []}", ""),
    "backwards": ("{do_sample: true, temperature: -0.5, until: []}", ""),
}
QUESTIONS = 12
GEN_KWARGS = {"do_sample": True, "temperature": 1.5}


@pytest.fixture(scope="module")
def tasks_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"q": f"The {word} is", "a": "aeiost"[n % 6]} for n, word in enumerate("abcdefghijkl")]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, (settings, more) in TASKS.items():
        text = TASK.format(name=name, folder=folder, settings=settings, more=more)
        (folder / f"{name}.yaml").write_text(text)
    return str(folder)


Config = Callable[..., LmEvalConfig]


@pytest.fixture(scope="module")
def config_of(model_path: str, tasks_path: str) -> Config:
    def make(output: Path, *tasks: str | EvalTask, options: HarnessOptions | None = None, **fields: Any) -> Any:
        given: dict[str, Any] = {
            "tasks": tasks,
            "include_path": tasks_path,
            "batch_size": 4,
            "options": options,
            **fields,
        }
        return unwrap_versioned_value(LmEvalConfig(model_path=model_path, output_path=str(output), **given))

    return make


def rows_of(output: Path, task: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (output / "samples.jsonl").read_text().splitlines()]
    return [row for row in rows if row["task"] == task]


def texts_of(output: Path, task: str) -> list[list[str]]:
    return [[answer["generated"] for answer in row["answers"]] for row in rows_of(output, task)]


def written(output: Path) -> dict[str, bytes]:
    return {name: (output / name).read_bytes() for name in ("scores.csv", "samples.jsonl")}


def require_scores(output: Path, result: dict[str, Any], task: str, repeats: int, ks: tuple[int, ...]) -> None:
    """The scores are those of the answers in the file, by other means than the stage's."""
    rows, scores = rows_of(output, task), result["scores"][task]
    metric, ends = "exact_match", "_first-letter"
    rights = [[answer[f"{metric}{ends}"] for answer in row["answers"]] for row in rows]
    assert all(len(of) == repeats for of in rights)
    for row, of in zip(rows, rights, strict=True):
        letters = [answer["extracted"]["first-letter"] for answer in row["answers"]]
        assert of == [float(letter == row["target"]) for letter in letters]
        assert row[f"{metric}_avg@{repeats}{ends}"] == pytest.approx(fmean(of))
        for k in ks:
            drawn = [max(some) for some in combinations(of, k)]
            assert row[f"{metric}_pass@{k}{ends}"] == pytest.approx(fmean(drawn))
            most = Counter(letters[:k]).most_common(1)[0][0]
            assert k == 1 or row[f"{metric}_maj@{k}{ends}"] == float(most == row["target"])
    names = [f"{metric}_avg@{repeats}", *(f"{metric}_pass@{k}" for k in ks)]
    for name in names:
        values = [row[f"{name}{ends}"] for row in rows]
        assert scores[f"{name}{ends}"] == pytest.approx(fmean(values))
        assert scores[f"{name}{ends}_stderr"] == pytest.approx(stdev(values) / math.sqrt(len(values)))


def test_each_question_has_different_answers_and_scores_over_them_and_a_second_evaluation_the_same(
    config_of: Config, tmp_path: Path
) -> None:
    options = HarnessOptions(gen_kwargs={**GEN_KWARGS, "max_tokens": 3}, repeats=6, pass_at=(1, 4))
    result = evaluate_with_lm_eval(config_of(tmp_path / "a", "greedy_letters", options=options))
    require_scores(tmp_path / "a", result, "greedy_letters", 6, (1, 4, 6))
    texts = texts_of(tmp_path / "a", "greedy_letters")
    assert all(len(set(of)) > 1 for of in texts)
    assert texts[0] != texts[1]
    table = {row["metric"]: row for row in csv.DictReader((tmp_path / "a/scores.csv").open())}
    assert table["exact_match_pass@4_first-letter"]["higher_is_better"] == "True"
    assert not any(name.endswith("@6_voted") for name in table), "a vote over one answer is none"
    own = json.loads((tmp_path / "a/results.json").read_text())["results"]["greedy_letters"]
    scores = result["scores"]["greedy_letters"]
    assert own["exact_match_pass@4,first-letter"] == scores["exact_match_pass@4_first-letter"]
    rows = rows_of(tmp_path / "a", "greedy_letters")
    right = sum(any(answer["exact_match_first-letter"] for answer in row["answers"]) for row in rows)
    page = (tmp_path / "a/samples.html").read_text()
    assert page.count('<article class="right">') == right
    assert "of 6 right" in page
    evaluate_with_lm_eval(config_of(tmp_path / "b", "greedy_letters", options=options))
    assert written(tmp_path / "a") == written(tmp_path / "b")


@pytest.mark.long
def test_the_repeats_and_settings_of_a_tasks_yaml_run_without_an_option(config_of: Config, tmp_path: Path) -> None:
    result = evaluate_with_lm_eval(config_of(tmp_path, "sampled", "alike", "greedy"))
    require_scores(tmp_path, result, "sampled", 5, (5,))
    assert texts_of(tmp_path, "sampled") != texts_of(tmp_path, "alike"), "each task has seeds of its own"
    assert "answers" not in rows_of(tmp_path, "greedy")[0]


@pytest.mark.long
def test_another_seed_gives_other_answers_and_fewer_repeats_the_first_of_them(
    config_of: Config, tmp_path: Path
) -> None:
    for name, options in {
        "five": HarnessOptions(),
        "two": HarnessOptions(repeats=2),
        "other": HarnessOptions(seed=7),
    }.items():
        evaluate_with_lm_eval(config_of(tmp_path / name, "sampled", options=options))
    five, two, other = (texts_of(tmp_path / name, "sampled") for name in ("five", "two", "other"))
    assert two == [of[:2] for of in five]
    assert other != five


def test_options_that_are_not_given_change_no_version_and_those_that_are_do() -> None:
    def version(options: HarnessOptions | None) -> str:
        raw = output_path_of(default_download("x", "gs://x"))
        step = default_eval(raw, ["gsm8k_cot", EvalTask("mmlu", 5)], options=options)
        return build_graph([step])[step].version.hash

    older = {"09c3b9": None, "c93af5": HarnessOptions()}
    older["48b6ad"] = HarnessOptions(apply_chat_template=versioned(True))
    assert {version(options) for options in older.values()} == older.keys(), "of the time before these options"
    given = [
        HarnessOptions(gen_kwargs=GEN_KWARGS),
        HarnessOptions(gen_kwargs={**GEN_KWARGS, "top_p": 0.9}),
        HarnessOptions(repeats=4),
        HarnessOptions(repeats=versioned(8)),
        HarnessOptions(repeats=8, pass_at=(1, 4)),
    ]
    assert len({version(options) for options in given} | older.keys()) == len(given) + len(older)
    assert version(HarnessOptions(repeats=8)) == version(given[3]), "versioned() may be left out"


UTILS = """
import evaluate

compute = evaluate.load("code_eval")

def pass_at_k(references, predictions, k=None):
    return compute.compute(references=references, predictions=predictions, k=k)[0]

pass_at_k.__name__ = "pass@1"  # as its first score is called

def programs(resps, docs):
    return [[f"text = {answer!r}" for answer in of] for of in resps]
"""
PROGRAMS = """
task: programs
unsafe_code: true
output_type: generate_until
doc_to_text: "{{q}}"
doc_to_target: "assert '{{a}}' in text"
generation_kwargs: {do_sample: true, temperature: 1.5, max_gen_toks: 4, until: []}
repeats: 5
metric_list: [{metric: !function utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1, 2]}]
filter_list: [{name: create_test, filter: [{function: custom, filter_fn: !function utils.programs}]}]
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="programs run in bubblewrap")
def test_programs_are_counted_by_answer_and_pass_at_k_is_that_of_the_task(
    config_of: Config, tasks_path: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tasks"
    shutil.copytree(tasks_path, folder)
    (folder / "utils.py").write_text(UTILS)
    data = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {folder}/rows.jsonl}}}}\ntest_split: test\n"
    (folder / "programs.yaml").write_text(PROGRAMS + data)
    options = HarnessOptions(pass_at=(1, 2, 4), confirm_run_unsafe_code=True)
    config = config_of(tmp_path / "out", "programs", options=options, include_path=str(folder))
    scores = evaluate_with_lm_eval(config)["scores"]["programs"]
    rows = rows_of(tmp_path / "out", "programs")
    rights = [[answer["pass@1_create_test"] for answer in row["answers"]] for row in rows]
    for row, of in zip(rows, rights, strict=True):
        assert of == [float(row["target"][8] in answer["generated"]) for answer in row["answers"]]
    assert 0 < sum(map(sum, rights)) < 5 * QUESTIONS
    assert scores["avg@5_create_test"] == scores["pass@1_create_test"] == pytest.approx(fmean(map(fmean, rights)))
    for k in (2, 4, 5):
        expected = fmean(fmean(max(some) for some in combinations(of, k)) for of in rights)
        assert scores[f"pass@{k}_create_test"] == pytest.approx(expected)
    assert not any("maj@" in name for name in scores)


@pytest.mark.long
def test_a_comparison_pairs_the_questions_by_their_means_over_answers(config_of: Config, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        result = evaluate_with_lm_eval(config_of(tmp_path / name, "sampled", options=HarnessOptions(seed=seed)))
        (tmp_path / name / ".executor_info").write_text(json.dumps({"name": name, "result": result}))
    for metric in ("exact_match_avg@5", "exact_match_pass@5", "exact_match_maj@5"):
        config = CompareModelsConfig(
            models={name: str(tmp_path / name) for name in "ab"},
            metrics={"sampled": f"{metric},first-letter"},
            output_path=str(tmp_path / metric),
        )
        compare_models(unwrap_versioned_value(config))
        [row] = map(json.loads, (tmp_path / metric / "differences.jsonl").read_text().splitlines())
        name = f"{metric}_first-letter"
        pairs = zip(rows_of(tmp_path / "b", "sampled"), rows_of(tmp_path / "a", "sampled"), strict=True)
        differences = [mine[name] - theirs[name] for mine, theirs in pairs]
        assert (row["metric"], row["questions"]) == (name, QUESTIONS)
        assert row["difference"] == pytest.approx(fmean(differences))
        assert row["error"] == pytest.approx(stdev(differences) / math.sqrt(QUESTIONS))


SCRIPT = """
import json, sys
from marin_assets.stages.evaluate.lm_eval import evaluate_with_lm_eval
from marin_resources.wire.config_json import decode
print(json.dumps(evaluate_with_lm_eval(decode(json.loads(sys.argv[1])))))
"""


@pytest.mark.long
@pytest.mark.timeout(1200)  # each of five processes imports and compiles
@pytest.mark.parametrize("engine", [None, JAX], ids=["in process", "served"])
def test_kills_change_no_sample_and_no_question_is_answered_twice(
    config_of: Config, tmp_path: Path, engine: Engine | None
) -> None:
    fields: dict[str, Any] = {"engine": engine, "save_every_s": 0.0}
    tasks = ("sampled", "alike", "greedy", EvalTask("greedy", 0, "again"))
    config = config_of(tmp_path / "killed", *tasks, **fields)
    command = [sys.executable, "-c", SCRIPT, json.dumps(encode(config))]
    drawn, saved = random.Random(3), []
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            goal = len(_saved(tmp_path / "killed")) + drawn.randint(5, 40)
            while process.poll() is None and len(_saved(tmp_path / "killed")) < goal:
                time.sleep(0.002)
            process.kill()
        saved.append(_saved(tmp_path / "killed"))
    assert 0 < len(saved[0]) < len(saved[-1]) <= QUESTIONS * 11
    for names in saved:
        assert len(names) == len(set(names)), "no request has two answers"
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    undisturbed = evaluate_with_lm_eval(config_of(tmp_path / "undisturbed", *tasks, **fields))
    assert json.loads(ended.stdout.splitlines()[-1]) == json.loads(json.dumps(undisturbed))
    assert written(tmp_path / "killed") == written(tmp_path / "undisturbed")


def _saved(output: Path) -> list[str]:
    parts = output.glob(f"{FOLDER}/generations-*/[!.]*.jsonl")
    return [json.loads(line)["place"] for path in parts for line in path.read_bytes().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("tasks", "options", "sentence"),
    [
        (
            ("penal",),
            {},
            "Task 'penal': A task generates with repetition_penalty=1.2, which JAX does not have, expected",
        ),
        (
            ("typo",),
            {},
            "Task 'typo': A task generates with temprature=0.5, expected one of .* Did you mean 'temperature'",
        ),
        (("beams",), {}, "Task 'beams': A task generates with num_beams=4, expected 1, which is all"),
        (
            ("backwards",),
            {},
            "Task 'backwards': A task generates with temperature=-0.5, expected a number from 0 to 100",
        ),
        (
            ("equal", "sampled"),
            {},
            "1 of 2 tasks .* Task 'equal': It answers each question 5 times and generates greedily",
        ),
        (("greedy",), {"repeats": 3}, "Task 'greedy': It answers each question 3 times and generates greedily"),
        (("greedy",), {"pass_at": (2,)}, r"pass_at=\(2,\), and each question is answered once. Set repeats to 2"),
        (("sampled",), {"pass_at": (1, 8)}, "task 'sampled' answers each question 5 times. Set repeats to 8"),
    ],
)
def test_what_would_not_be_sampled_is_refused_before_the_first_question(
    config_of: Config, tmp_path: Path, tasks: tuple[str, ...], options: dict[str, Any], sentence: str
) -> None:
    config = config_of(tmp_path, *tasks, options=HarnessOptions(**options), save_every_s=0.0)
    with pytest.raises(EvaluationError, match=sentence):
        evaluate_with_lm_eval(config)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gen_kwargs": "temperature=0.7"}, "gen_kwargs='temperature=0.7', expected settings by name"),
        ({"gen_kwargs": {"temperatur": 0.7}}, "gen_kwargs with temperatur=0.7, expected .* Did you mean 'temperature'"),
        ({"gen_kwargs": {"temperature": "0.7"}}, "temperature='0.7', expected a number from 0 to 100"),
        ({"gen_kwargs": {"temperature": -1}}, "temperature=-1, expected a number from 0 to 100"),
        ({"gen_kwargs": {"temperature": math.nan}}, "temperature=nan, expected a number from 0 to 100"),
        ({"gen_kwargs": {"temperature": True}}, "temperature=True, expected a number from 0 to 100"),
        ({"gen_kwargs": {"do_sample": "yes"}}, "do_sample='yes', expected true or false"),
        ({"gen_kwargs": {"top_p": 0}}, "top_p=0, expected a number above 0"),
        ({"gen_kwargs": {"top_k": 1.5}}, "top_k=1.5, expected a whole number"),
        ({"gen_kwargs": {"max_gen_toks": 0}}, "max_gen_toks=0, expected a whole number of tokens from 1 on"),
        ({"gen_kwargs": {"until": [1]}}, r"until=\[1\], expected a text or a list of texts"),
        ({"gen_kwargs": {"temperature": 0.7}}, "with a temperature and without do_sample"),
        ({"gen_kwargs": {"do_sample": True}}, "with do_sample and without a temperature"),
        ({"gen_kwargs": {"do_sample": False}, "repeats": 4}, "repeats=4 and greedy gen_kwargs"),
        ({"repeats": 0}, "repeats=0, expected a whole number from 1"),
        ({"repeats": True}, "repeats=True, expected a whole number from 1"),
        ({"repeats": 4, "pass_at": (1, 8)}, r"pass_at=\(1, 8\), expected whole numbers from 1 to repeats=4"),
        ({"pass_at": 4}, "pass_at=4, expected whole numbers"),
        ({"pass_at": ()}, r"pass_at=\(\), expected whole numbers"),
    ],
)
def test_an_option_without_a_meaning_is_a_sentence(
    config_of: Config, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(EvaluationError, match=sentence):
        evaluate_with_lm_eval(config_of(tmp_path, "greedy", options=HarnessOptions(**options)))
