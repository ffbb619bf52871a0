"""Suites of tasks, with data from a folder in place of the hub."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from marin_assets.defaults import default_download, default_eval
from marin_assets.documents import write_rows
from marin_assets.plan.requirements import missing_requirements_of
from marin_assets.stages.evaluate import suites
from marin_assets.stages.evaluate.lm_eval import EvaluationError, HarnessOptions, LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.evaluate.lm_eval_config import check_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.labels import label_tasks
from marin_assets.stages.evaluate.lm_eval_tasks.run_tasks import run_together
from marin_assets.stages.evaluate.lm_eval_tasks.task_data import OLMES, TASKS, MirrorError, data_of_tasks, files_of
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.requirements import describe_missing
from marin_resources.types.record import Record
from marin_resources.wire.config_json import decode, encode

QUESTIONS = 12


@pytest.fixture
def mirror(tmp_path: Path) -> str:
    """COPA as the hub has it, in two splits, of which one is in two files."""
    drawn = random.Random(1)
    words = ["file", "function", "module", "string", "loop", "value"]
    rows = [
        {
            "premise": f"The {drawn.choice(words)} was opened.",
            "choice1": f"It was read by a {drawn.choice(words)}.",
            "choice2": f"It was closed by a {drawn.choice(words)}.",
            "question": drawn.choice(["cause", "effect"]),
            "idx": i,
            "label": i % 2,
        }
        for i in range(3 * QUESTIONS)
    ]
    folder = tmp_path / "mirror/aps/super_glue/copa"
    write_rows(str(folder / "validation.parquet"), rows[:QUESTIONS])
    for part in (0, 1):
        write_rows(str(folder / f"train-{part:05}-of-00002.parquet"), rows[QUESTIONS * (part + 1) :][:QUESTIONS])
    return str(tmp_path / "mirror")


def config(**fields: Any) -> LmEvalConfig:
    found: LmEvalConfig = unwrap_versioned_value(LmEvalConfig(**{"model_path": "m", "output_path": "o", **fields}))
    return found


@pytest.mark.long  # lm-eval's own 14,000 tasks are indexed
def test_a_task_runs_at_two_numbers_of_shots_from_a_mirror(model_path: str, mirror: str, tmp_path: Path) -> None:
    tasks = (EvalTask("copa", 0), EvalTask("copa", 2, "copa_2shot"))
    given = config(model_path=model_path, output_path=str(tmp_path / "out"), tasks=tasks, mirror_path=mirror)
    result = evaluate_with_lm_eval(decode(encode(given)))
    assert {task: found["instances"] for task, found in result["scores"].items()} == {
        "copa": QUESTIONS,
        "copa_2shot": QUESTIONS,
    }
    from marin_assets.stages.report.records import StepRecord

    rows = list(StepRecord(label="", path=str(tmp_path / "out"), record=Record()).rows("samples.jsonl"))
    contexts = {task: [row["context"] for row in rows if row["task"] == task] for task in result["scores"]}
    assert all(context.count("\n\n") == 2 for context in contexts["copa_2shot"])
    assert [text.rpartition("\n\n")[2] for text in contexts["copa_2shot"]] == contexts["copa"]


@pytest.mark.long
def test_a_task_without_data_is_a_sentence_before_the_model_is_asked(
    model_path: str, mirror: str, tmp_path: Path
) -> None:
    given = config(model_path=model_path, output_path=str(tmp_path), tasks=("hellaswag",), mirror_path=mirror)
    with pytest.raises(MirrorError, match=r"has no data of 'Rowan/hellaswag' \(config 'default'\): expected Rowan/"):
        evaluate_with_lm_eval(given)


def test_the_files_of_a_split_are_read_together(mirror: str) -> None:
    kind, files = files_of(mirror, "m", "aps/super_glue", "copa")
    assert kind == "parquet"
    assert {split: len(of) for split, of in files.items()} == {"train": 2, "validation": 1}


def test_what_a_mirror_lacks_is_named_with_what_it_has(mirror: str) -> None:
    with pytest.raises(MirrorError, match=r"has no data of 'aps/super_glue' \(config 'boolq'\).*of it there is copa"):
        files_of(mirror, "m", "aps/super_glue", "boolq")
    Path(mirror, "aps/super_glue/copa/test.jsonl").write_text("{}\n")
    with pytest.raises(MirrorError, match="files of two formats"):
        files_of(mirror, "m", "aps/super_glue", "copa")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"tasks": ()}, "LmEvalConfig has no tasks"),
        ({"tasks": ("arc_easy", EvalTask("arc_easy"))}, "has the task 'arc_easy' with the label 'arc_easy' twice"),
        (
            {"tasks": ("arc_easy", EvalTask("piqa", 5, "arc_easy"))},
            "has the task 'piqa' with the label 'arc_easy' twice",
        ),
        ({"use_hub": True, "mirror_path": "m"}, "has use_hub and mirror_path"),
    ],
)
def test_a_mistake_is_one_sentence(fields: Any, sentence: str) -> None:
    with pytest.raises(EvaluationError, match=sentence):
        check_tasks(config(**fields))


def test_tasks_with_one_number_of_shots_run_together() -> None:
    runs = run_together(list(suites.CORE_TASKS))
    assert [{task.num_fewshot for task in run} for run in runs] == [{3}, {10}, {0}]
    assert sum(map(len, runs)) == len(suites.CORE_TASKS)
    assert len(run_together([EvalTask("a", 0), EvalTask("a", 0, "b")])) == 2


def test_scores_of_a_group_have_its_alias_in_front() -> None:
    members = [(EvalTask("mmlu", 5, "mmlu_5shot"), ["mmlu", "mmlu_stem", "mmlu_anatomy"]), (EvalTask("piqa", 5), [])]
    assert label_tasks(members) == [
        {"mmlu": "mmlu_5shot", "mmlu_stem": "mmlu_5shot/mmlu_stem", "mmlu_anatomy": "mmlu_5shot/mmlu_anatomy"},
        {"piqa": "piqa"},
    ]


def test_a_task_at_two_numbers_of_shots_and_a_member_beside_its_group_have_labels_of_their_own() -> None:
    of = ["mmlu", "anatomy"]
    assert label_tasks([(EvalTask("mmlu", 5), of), (EvalTask("anatomy", 0), []), (EvalTask("mmlu", 5, "m"), of)]) == [
        {"mmlu": "mmlu", "anatomy": "anatomy_5shot"},
        {"anatomy": "anatomy_0shot"},
        {"mmlu": "m", "anatomy": "m/anatomy"},
    ]
    assert label_tasks([(EvalTask("mmlu", 5), of), (EvalTask("anatomy", 5), [])])[1] == {"anatomy": "anatomy"}
    assert label_tasks([(EvalTask("arc"), []), (EvalTask("arc", 5), [])]) == [{"arc": "arc"}, {"arc": "arc_5shot"}]


def test_a_label_of_two_tasks_is_refused() -> None:
    members = [(EvalTask("mmlu", 5), ["mmlu", "anatomy"]), (EvalTask("piqa", 5, "anatomy"), [])]
    with pytest.raises(EvaluationError, match="have the label 'anatomy_5shot': of 'anatomy' in EvalTask"):
        label_tasks(members)


@pytest.mark.parametrize("name", [name for name in vars(suites) if name.isupper()])
def test_each_suite_has_every_task_once_and_all_tasks_are_known(name: str) -> None:
    suite = getattr(suites, name)
    labels = [task.label for task in suite]
    assert len(labels) == len(set(labels)) > 0
    check_tasks(config(tasks=suite))


def test_programs_of_a_model_are_confirmed_when_the_step_is_created() -> None:
    model = default_download("model", "gs://x")
    with pytest.raises(EvaluationError, match=r"Step 'evaluation/raw/model': Task 'humaneval' runs the programs that"):
        default_eval(model, suites.KEY_GENERATION_TASKS)
    default_eval(model, suites.KEY_GENERATION_TASKS, options=HarnessOptions(confirm_run_unsafe_code=True))


def test_the_plan_has_what_a_suite_needs_on_this_machine(
    mirror: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = HarnessOptions(confirm_run_unsafe_code=True)
    model = default_download("model", "gs://x")
    graph = build_graph([default_eval(model, suites.KEY_GENERATION_TASKS, mirror=mirror, options=options)])
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox, data = describe_missing(missing_requirements_of(graph, str(tmp_path)))
    step = "Step 'evaluation/raw/model' needs "
    assert sandbox.startswith(
        f"{step}bubblewrap, in which the programs of the model run. A program that is not trusted"
    )
    assert data.startswith(f"{step}nltk's data, which its mirror {mirror!r} does not have. Copy nltk_data/tokenizers/")
    (Path(mirror) / "nltk_data/tokenizers/punkt_tab").mkdir(parents=True)
    (Path(mirror) / "nltk_data/tokenizers/punkt_tab/english.txt").write_text("")
    assert describe_missing(missing_requirements_of(graph, str(tmp_path))) == [sandbox]


@pytest.mark.long
def test_lm_eval_or_a_folder_here_has_all_tasks_of_the_suites() -> None:
    from lm_eval.tasks import TaskManager

    known = set(TaskManager(include_path=str(TASKS / OLMES), include_defaults=True).all_tasks)
    named = {task.name for name in vars(suites) if name.isupper() for task in getattr(suites, name)}
    assert named <= known


def test_data_of_nltk_are_read_from_the_mirror_and_requested_from_nobody(mirror: str) -> None:
    import nltk

    with data_of_tasks(config(mirror_path=mirror), "unused"):
        with pytest.raises(MirrorError, match="has no data of nltk called 'punkt_tab': expected nltk_data/token"):
            nltk.download("punkt_tab")
        (Path(mirror) / "nltk_data/tokenizers/ours").mkdir(parents=True)
        assert nltk.data.find("tokenizers/ours").endswith("nltk_data/tokenizers/ours")
    with pytest.raises(LookupError):
        nltk.data.find("tokenizers/ours")
