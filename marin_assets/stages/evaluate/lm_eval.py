"""Evaluate an exported model with lm-eval (EleutherAI's harness), on JAX and without torch.

In:  the folder of a Hugging Face export (config.json, model.safetensors, tokenizer.json, tokenizer_config.json); the
     held-out questions and texts, or any folder of lm-eval task YAMLs.
Out: `results.json`, every metric with its standard error, by task; `samples.jsonl`, the model's answer to each
     question; `plots/scores.png`.

Model, tasks and data are copied to a temporary folder, because the libraries read local files only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import logging
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_assets.stages.evaluate.hub_mirror import mirrored
from marin_assets.stages.evaluate.jsonl import write_jsonl
from marin_assets.stages.evaluate.suites import EvalTask
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.files import exists, list_files, write_bytes, write_json
from marin_resources.storage.filesystem import filesystem_of
from marin_resources.storage.paths import join

KINDS = ("lm-eval", "jax")

TASKS = Path(__file__).parent / "tasks"
QUESTIONS, TEXTS = "held_out_questions", "held_out_texts"
Z95 = 1.96
"""Half the width of a 95% confidence interval, in standard errors."""
BOOTSTRAP_DRAWS = 1000
"""Draws for standard errors without a formula; that of a mean has one."""

log = logging.getLogger(__name__)


class EvaluationError(ValueError):
    """The task or the model cannot be evaluated. The message has the task names that are known."""


@dataclass(frozen=True, kw_only=True)
class LmEvalConfig:
    model_path: str
    """Folder of a Hugging Face export."""
    held_out_path: str | None = None
    """Output of make_held_out_set, which the tasks "held_out_questions" and "held_out_texts" read."""
    output_path: str = THIS_OUTPUT_PATH
    tasks: tuple[str | EvalTask, ...] = versioned((QUESTIONS, TEXTS))
    """Names of tasks or groups; an EvalTask has shots of its own. `suites.py` has Marin's suites."""
    include_path: str | None = None
    """A folder of lm-eval task YAMLs."""
    num_fewshot: int | None = versioned(None)
    """Solved examples before each question; the task's own number if None."""
    max_eval_instances: int | None = versioned(None)
    """Most questions of a task; all if None."""
    max_length: int | None = versioned(None)
    """Tokens of context; the model's own window if None."""
    batch_size: int = 32
    """Texts of a batch. It changes speed and memory, and scores only in their last digits."""
    use_hub: bool = False
    """Include lm-eval's own tasks (5 s to index), and let tasks load their data from the Hugging Face hub."""
    mirror_path: str | None = None
    """A folder with the data of lm-eval's own tasks (`hub_mirror.py`), in place of the hub."""


def evaluate_with_lm_eval(config: LmEvalConfig) -> dict[str, Any]:
    """Evaluate a model with lm-eval.

    Returns the scores by task, and those of the held-out tasks also at the top level. Raises EvaluationError for an
    unknown task, a task twice, or a folder without a model, MirrorError for a task whose data the mirror lacks.
    """
    check_tasks(config)
    with (
        tempfile.TemporaryDirectory(prefix="lm-eval-") as folder,
        isolated_hugging_face(folder, config.use_hub),
        data_of_tasks(config, f"{folder}/mirror"),
    ):
        manager = load_tasks(config, folder)
        results = run_tasks(config, manager, folder)
    scores = scores_of(results)
    samples = [{"task": task, **sample_row(row)} for task, rows in sorted(results["samples"].items()) for row in rows]
    write_json(
        join(config.output_path, "results.json"), {"scores": scores, "config": finite_numbers(results["config"])}
    )
    write_jsonl(join(config.output_path, "samples.jsonl"), samples)
    plots = ["plots/scores.png"] if (bars := bars_of(scores)) else []
    for plot in plots:
        write_bytes(join(config.output_path, plot), draw_scores(bars))
    return {**headline(scores), "tasks": len(scores), "scores": scores, "plots": plots}


def eval_tasks(config: LmEvalConfig) -> list[EvalTask]:
    """The tasks, with their shots: their own, else those of the config."""
    tasks = [EvalTask(task) if isinstance(task, str) else task for task in config.tasks]
    return [
        task if task.num_fewshot is not None else dataclasses.replace(task, num_fewshot=config.num_fewshot)
        for task in tasks
    ]


def check_tasks(config: LmEvalConfig) -> None:
    """Raise EvaluationError for no tasks, for a label that two of them have, or for a hub and a mirror of it."""
    labels = [task.label for task in eval_tasks(config)]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if not labels or twice:
        found = f"the task {twice[0]!r} twice" if twice else "no tasks"
        raise EvaluationError(
            f"LmEvalConfig has {found}, expected each once. A task at two numbers of shots needs an alias: "
            "EvalTask('hellaswag', 10, 'hellaswag_10shot')."
        )
    if config.use_hub and config.mirror_path is not None:
        raise EvaluationError("LmEvalConfig has use_hub and mirror_path, expected one of them. Leave one out.")


@contextlib.contextmanager
def data_of_tasks(config: LmEvalConfig, folder: str) -> Iterator[None]:
    """Let tasks read their data from the mirror, if there is one. A mirror in a bucket is copied to `folder`."""
    if config.mirror_path is None:
        yield
        return
    is_here = os.path.isdir(config.mirror_path)
    local = config.mirror_path if is_here else copy_to_local(config.mirror_path, folder)
    with mirrored(local, config.mirror_path):
        yield


@contextlib.contextmanager
def isolated_hugging_face(folder: str, use_hub: bool) -> Iterator[None]:
    """Make datasets and transformers store their files in `folder`, and work offline unless `use_hub`."""
    offline = "0" if use_hub else "1"
    cache = f"{folder}/datasets"
    env = {"HF_HOME": folder, "HF_DATASETS_CACHE": cache, "HF_HUB_OFFLINE": offline, "HF_DATASETS_OFFLINE": offline}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    import datasets  # 1.3 s to import
    import huggingface_hub

    # The libraries read these variables once, on import, and this process may have imported them before.
    settings: list[tuple[Any, str, Any]] = [
        (datasets.config, "HF_DATASETS_CACHE", Path(cache)),
        (datasets.config, "HF_HUB_OFFLINE", not use_hub),
        (huggingface_hub.constants, "HF_HUB_OFFLINE", not use_hub),
    ]
    old = [(where, name, getattr(where, name)) for where, name, _ in settings]
    bars = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        for where, name, value in settings:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in old:
            setattr(where, name, value)
        for name, text in before.items():
            os.environ.pop(name) if text is None else os.environ.update({name: text})
        if bars:
            datasets.enable_progress_bars()


def load_tasks(config: LmEvalConfig, folder: str) -> Any:
    """Return lm-eval's TaskManager of all task folders. Raises EvaluationError for a task that no folder has."""
    from lm_eval.tasks import TaskManager  # 1.3 s to import

    folders = [write_held_out_tasks(config.held_out_path, f"{folder}/held_out")] if config.held_out_path else []
    if config.include_path:
        folders.append(copy_to_local(config.include_path, f"{folder}/include"))
    with_defaults = config.use_hub or config.mirror_path is not None
    manager = TaskManager(include_path=[*folders], include_defaults=with_defaults)
    for task in eval_tasks(config):
        if (name := task.name) not in manager.all_tasks:
            known = sorted(manager.all_tasks)
            raise EvaluationError(
                f"Task {name!r} is unknown, expected one of {known[:20]} ({len(known)} in all). Pass held_out_path for "
                "the held-out tasks, include_path for a folder with the task's YAML, or mirror_path or use_hub=True "
                "for lm-eval's own."
            )
    return manager


def write_held_out_tasks(held_out_path: str, folder: str) -> str:
    """Write the held-out tasks to `folder`, with a local copy of their data beside them. Returns `folder`."""
    for task, name in ((QUESTIONS, "questions.jsonl"), (TEXTS, "texts.jsonl")):
        data = copy_to_local(join(held_out_path, name), f"{folder}/data")
        data_files = json.dumps({"data_files": {"validation": f"{data}/{name}"}})
        yaml = (TASKS / f"{task}.yaml").read_text()
        Path(folder, f"{task}.yaml").write_text(f"{yaml}dataset_kwargs: {data_files}\n")
    return folder


def copy_to_local(path: str, folder: str) -> str:
    """Copy the file or folder at `path` into `folder`. Returns `folder`. Raises FileNotFoundError for an empty path."""
    fs, root = filesystem_of(path)
    for source in list_files(path):
        _, name = filesystem_of(source)
        target = Path(folder, os.path.basename(name) if name == root else os.path.relpath(name, root))
        target.parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(name, str(target))
    return folder


def run_tasks(config: LmEvalConfig, manager: Any, folder: str) -> dict[str, Any]:
    """Run the tasks, those with one number of shots together. Returns lm-eval's results, by the tasks' labels."""
    from lm_eval import evaluator

    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.jax_lm import JaxLM  # imports lm-eval at its top

    if not exists(join(config.model_path, "config.json")):
        raise EvaluationError(
            f"{config.model_path!r} has no 'config.json', expected the folder of a Hugging Face export. Pass for "
            "example 'hf' below a training step's output."
        )
    model, tokenizer = load_model(copy_to_local(config.model_path, f"{folder}/model"))
    lm = JaxLM(model, tokenizer, batch_size=config.batch_size, max_length=config.max_length)
    found: dict[str, Any] = {"results": {}, "samples": {}, "config": {}}
    for together in run_together(eval_tasks(config)):
        results = evaluator.simple_evaluate(
            lm,
            tasks=[task.name for task in together],
            task_manager=manager,
            num_fewshot=together[0].num_fewshot,
            limit=config.max_eval_instances,
            bootstrap_iters=BOOTSTRAP_DRAWS,
            log_samples=True,
        )
        labels = labels_of(together, results)
        for part in ("results", "samples"):
            found[part] |= {labels.get(name, name): value for name, value in results[part].items()}
        found["config"] = results["config"]
    return found


def run_together(tasks: Sequence[EvalTask]) -> list[list[EvalTask]]:
    """The tasks in as few runs as have one number of shots, and no task twice."""
    runs: list[list[EvalTask]] = []
    for task in tasks:
        for run in runs:
            if run[0].num_fewshot == task.num_fewshot and task.name not in [one.name for one in run]:
                run.append(task)
                break
        else:
            runs.append([task])
    return runs


def labels_of(tasks: Sequence[EvalTask], results: Mapping[str, Any]) -> dict[str, str]:
    """What the scores of each task are called; those in a group with an alias: "mmlu_5shot/mmlu_anatomy"."""
    children: Mapping[str, Sequence[str]] = results.get("group_subtasks") or {}
    found: dict[str, str] = {}
    for task in tasks:
        if task.alias is None:
            continue
        found[task.name] = task.alias
        left = list(children.get(task.name, ()))
        while left:
            name = left.pop()
            found[name] = f"{task.alias}/{name}"
            left += children.get(name, ())
    return found


def scores_of(results: Mapping[str, Any]) -> dict[str, dict[str, float | int]]:
    """Return by task: instances, each metric, its standard error and the bounds of its 95% confidence interval."""
    scores: dict[str, dict[str, float | int]] = {}
    for task, metrics in sorted(results["results"].items()):
        numbers = finite_numbers(metrics)
        found: dict[str, float | int] = {"instances": numbers.pop("sample_len")} if "sample_len" in numbers else {}
        for key, value in numbers.items():
            metric, _, filter_name = key.partition(",")
            found[metric if filter_name in ("", "none") else f"{metric}_{filter_name}"] = value
        scores[task] = {**found, **bounds_of(found), **chance_of(results["samples"].get(task, []))}
    return scores


def finite_numbers(values: Mapping[str, Any]) -> dict[str, float | int]:
    """Return the values that are finite numbers."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in values.items()}
    return {k: v for k, v in plain.items() if type(v) in (int, float) and math.isfinite(v)}


def bounds_of(found: Mapping[str, float]) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for metric, value in found.items():
        error = found.get(f"{metric}_stderr")
        if error is not None:
            bounds |= {f"{metric}_lower95": value - Z95 * error, f"{metric}_upper95": value + Z95 * error}
    return bounds


def chance_of(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the accuracy of guessing in a multiple-choice task; empty for other tasks."""
    counts = [len(row["choices"]) for row in map(sample_row, samples) if len(row.get("choices", ())) > 1]
    return {"chance": sum(1 / count for count in counts) / len(counts)} if counts else {}


def headline(scores: Mapping[str, Mapping[str, float | int]]) -> dict[str, float | int]:
    """Return the scores of the held-out tasks, for the top level of the result, where expectations look."""
    questions, texts = dict(scores.get(QUESTIONS, {})), dict(scores.get(TEXTS, {}))
    renamed = {"questions" if key == "instances" else key: value for key, value in questions.items()}
    return {**renamed, **{"texts" if key == "instances" else key: value for key, value in texts.items()}}


def sample_row(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return one question with the model's answer: log-likelihoods in nats, or the generated text."""
    arguments, answers = sample["arguments"], [answer[0] for answer in sample["resps"]]
    metrics = finite_numbers({name: sample[name] for name in sample["metrics"]})
    row = {"doc_id": sample["doc_id"], "target": sample["target"]}
    if isinstance(answers[0], str):
        return {**row, "context": arguments[0][0], "generated": answers[0], **metrics}
    if isinstance(answers[0], float):
        return {"doc_id": sample["doc_id"], "loglikelihood": answers[0], **metrics}
    scores = [answer[0] for answer in answers]
    count = len(scores) // 2 if "acc_mutual_info" in sample["metrics"] else len(scores)
    given, prior = scores[:count], scores[count:]
    row |= {"context": arguments[0][0], "choices": [argument[1].strip() for argument in arguments[:count]]}
    row |= {"loglikelihoods": given, "pick": given.index(max(given))}
    if prior:
        gained = [with_context - without for with_context, without in zip(given, prior, strict=True)]
        row |= {"unconditional_loglikelihoods": prior, "pick_mutual_info": gained.index(max(gained))}
    return {**row, **metrics}


def bars_of(scores: Mapping[str, Mapping[str, float]]) -> list[tuple[str, float, float, float | None]]:
    """Return (label, value, half its 95% confidence interval, accuracy of guessing or None) of every accuracy."""
    return [
        (f"{task}\n{metric}", value, Z95 * found[f"{metric}_stderr"], found.get("chance"))
        for task, found in scores.items()
        for metric, value in found.items()
        if f"{metric}_stderr" in found and 0 <= value <= 1
    ]


def draw_scores(bars: Sequence[tuple[str, float, float, float | None]]) -> bytes:
    """Draw a PNG: a bar for each accuracy with its 95% confidence interval, and a line at the accuracy of guessing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # 0.4 s to import
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 1.7 * len(bars)), 4.0), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for place, (_, value, half, chance) in enumerate(bars):
        axes.bar(place, value, yerr=half, width=0.6, color="#4c78a8", capsize=5)
        axes.annotate(
            f"{value:.3f}", (place, value + half), ha="center", va="bottom", xytext=(0, 3), textcoords="offset points"
        )
        if chance is not None:
            axes.hlines(
                chance, place - 0.5, place + 0.5, color="#e45756", linestyle="--", label="" if place else "chance"
            )
    axes.set_xticks(range(len(bars)), [label for label, *_ in bars], fontsize=8)
    axes.set(ylim=(0, 1.1), ylabel="score, 95% confidence interval")
    axes.spines[["top", "right"]].set_visible(False)
    if any(chance is not None for *_, chance in bars):
        axes.legend(frameon=False, loc="upper left")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()
