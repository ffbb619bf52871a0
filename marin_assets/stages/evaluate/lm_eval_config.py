"""The config of an evaluation with lm-eval."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.models.generation_settings import check_settings, temperature_of
from marin_assets.stages.evaluate.scores import QUESTIONS, TEXTS
from marin_assets.stages.evaluate.suites import EvalTask, runs_programs, splits_answers
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, ensure_versioned, versioned, without_versions
from marin_resources.hardware.resources import Resources
from marin_resources.host.sandbox import SandboxError, require_sandbox
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError

MOST_REPEATS = 1000
SANDBOX = "a sandbox"
NLTK_DATA = "nltk_data/tokenizers/punkt_tab"


class EvaluationError(MarinError, ValueError):
    """The task or the model cannot be evaluated. The message has the task names that are known."""


@dataclass(frozen=True, kw_only=True)
class HarnessOptions:
    """Options of lm-eval's command, by its names where it has one."""

    apply_chat_template: bool = versioned(False)
    """Put each question into a conversation, by the tokenizer's template."""
    system_instruction: str | None = versioned(None)
    """The system's turn before it."""
    fewshot_as_multiturn: bool = versioned(False)
    """Solved examples as turns of the conversation."""
    bootstrap_iters: int = versioned(1000)
    """Draws for standard errors without a formula; that of a mean has one."""
    seed: int = versioned(1234)
    """Seed of the draw of solved examples, where a task draws them, and of sampled answers."""
    gen_kwargs: dict[str, Any] | None = None
    """Settings that override those of tasks that generate, by lm-eval's names: {"do_sample": True, "temperature": 0.7,
    "top_p": 0.95}; versioned(), which the default_* functions see to, as of the next two."""
    repeats: int | None = None
    """Sampled answers to each question of a task that generates; the task's own number if None."""
    pass_at: tuple[int, ...] | None = None
    """Numbers k of answers for pass@k and maj@k of repeated answers, beside all of them."""
    confirm_run_unsafe_code: bool = False
    """Run the programs that the model writes, in a sandbox: HumanEval and MBPP do. It needs bubblewrap."""


@dataclass(frozen=True, kw_only=True)
class LmEvalConfig:
    model_path: str | None = None
    """Folder of a Hugging Face export; of an endpoint's model, one with its tokenizer, or None."""
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
    engine: Engine | Endpoint | None = None
    """Engine that computes: our JAX model in this process if None; `inference/engine.py` has torch and vLLM, and the
    Endpoint of a server that runs already."""
    options: HarnessOptions | None = None
    """Options of lm-eval; its defaults if None."""
    save_every_s: float | None = None
    """Interval between two saves of the answers, for an attempt that resumes; None: as short as saving takes 2 % of the
    time, a second at least."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, check_evaluation, name)

    def needs_here(self) -> tuple[str, ...]:
        """Names of what the tasks need on the machine, beside packages."""
        config = without_versions(self)
        needs = [SANDBOX] if config.options is not None and config.options.confirm_run_unsafe_code else []
        if isinstance(config.mirror_path, str) and any(splits_answers(task.name) for task in eval_tasks(config)):
            needs.append(config.mirror_path)
        return tuple(needs)

    def missing_here(self) -> Iterator[tuple[str, str]]:
        """Each need that is not met, and the remedy."""
        for need in self.needs_here():
            if need == SANDBOX:
                try:
                    require_sandbox()
                except SandboxError as error:
                    yield "bubblewrap, in which the programs of the model run", str(error)
            elif not exists(join(need, NLTK_DATA)):
                remedy = f"Copy {NLTK_DATA} to {need!r}, as nltk.download writes it, or leave IFEval out."
                yield f"nltk's data, which its mirror {need!r} does not have", remedy


def in_version(options: HarnessOptions | None) -> HarnessOptions | None:
    """The options as a step has them: what is None is not in versions, which are older than the fields."""
    if not isinstance(options, HarnessOptions):
        return options
    given = {name: getattr(options, name) for name in ("gen_kwargs", "repeats", "pass_at")}
    values = {name: ensure_versioned(value) for name, value in given.items() if value is not None}
    return dataclasses.replace(options, **values)


def eval_tasks(config: LmEvalConfig) -> list[EvalTask]:
    """The tasks, with their shots: their own, else those of the config."""
    tasks = [EvalTask(task) if isinstance(task, str) else task for task in config.tasks]
    return [
        task if task.num_fewshot is not None else dataclasses.replace(task, num_fewshot=config.num_fewshot)
        for task in tasks
    ]


def check_evaluation(config: LmEvalConfig) -> None:
    """Raise EvaluationError as `check_tasks`, and for programs that are run without a confirmation."""
    check_tasks(config)
    is_confirmed = config.options is not None and config.options.confirm_run_unsafe_code
    unsafe = next((task.name for task in eval_tasks(config) if runs_programs(task.name)), None)
    if unsafe is not None and not is_confirmed:
        raise EvaluationError(
            f"Task {unsafe!r} runs the programs that the model writes. Pass "
            "HarnessOptions(confirm_run_unsafe_code=True), which runs them in a sandbox, or leave the task out."
        )


def check_tasks(config: LmEvalConfig) -> None:
    """Raise EvaluationError for no tasks, a task twice, an alias of two tasks, a hub and a mirror of it, no model."""
    tasks = eval_tasks(config)
    if not tasks:
        raise EvaluationError("LmEvalConfig has no tasks, expected one at least, such as 'held_out_questions'.")
    owners: dict[tuple[str, int | None], EvalTask] = {}
    names: dict[str, str] = {}
    for task in tasks:
        if (task.label, task.num_fewshot) in owners or names.setdefault(task.label, task.name) != task.name:
            raise EvaluationError(
                f"LmEvalConfig has the task {task.name!r} with the label {task.label!r} twice, expected each label of "
                "one task, at different numbers of shots. Leave one out, or give it an alias: "
                "EvalTask('hellaswag', 10, 'hellaswag_10shot')."
            )
        owners[task.label, task.num_fewshot] = task
    if config.use_hub and config.mirror_path is not None:
        raise EvaluationError("LmEvalConfig has use_hub and mirror_path, expected one of them. Leave one out.")
    if config.model_path is None and (config.max_length is not None or not isinstance(config.engine, Endpoint)):
        raise EvaluationError(
            "LmEvalConfig has no model_path, and max_length or an engine that is no Endpoint, expected the folder of "
            "an export: without one an endpoint's model is evaluated by texts. Set model_path."
        )
    options = config.options
    if options is not None:
        _check_sampling(options)
    if options and (options.fewshot_as_multiturn or options.system_instruction) and not options.apply_chat_template:
        raise EvaluationError(
            "HarnessOptions has system_instruction or fewshot_as_multiturn without apply_chat_template, expected both. "
            "Set apply_chat_template=True, or leave them out."
        )


def _check_sampling(options: HarnessOptions) -> None:
    given, repeats, pass_at = options.gen_kwargs, options.repeats, options.pass_at
    if given is not None:
        _check_gen_kwargs(given)
    if repeats is not None and (type(repeats) is not int or not 1 <= repeats <= MOST_REPEATS):
        raise EvaluationError(
            f"HarnessOptions has repeats={repeats!r}, expected a whole number from 1 to {MOST_REPEATS}."
        )
    if repeats is not None and repeats > 1 and given and not temperature_of({"temperature": 1.0, **given}):
        raise EvaluationError(
            f"HarnessOptions has repeats={repeats} and greedy gen_kwargs={given!r}, expected sampled answers: greedy "
            "ones would be equal. Set do_sample to True and a temperature above 0, or leave repeats out."
        )
    if pass_at is None:
        return
    is_list = isinstance(pass_at, tuple | list) and len(pass_at) > 0
    if not is_list or any(type(k) is not int or k < 1 or k > (repeats or MOST_REPEATS) for k in pass_at):
        most = f"repeats={repeats}" if repeats else "the number of repeats"
        raise EvaluationError(
            f"HarnessOptions has pass_at={pass_at!r}, expected whole numbers from 1 to {most}, such as pass_at=(1, 4)."
        )


def _check_gen_kwargs(given: Any) -> None:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise EvaluationError(
            f"HarnessOptions has gen_kwargs={given!r:.200}, expected settings by name. Pass for example "
            'gen_kwargs={"do_sample": True, "temperature": 0.7}.'
        )
    try:
        check_settings(given, "HarnessOptions has gen_kwargs with")
    except ModelError as error:
        raise EvaluationError(str(error)) from None
    if given.get("temperature") and not given.get("do_sample"):
        raise EvaluationError(
            f"HarnessOptions has gen_kwargs={given!r} with a temperature and without do_sample, which most tasks have "
            'as false: they would stay greedy. Add "do_sample": True.'
        )
    if given.get("do_sample") and given.get("temperature") is None:
        raise EvaluationError(
            f"HarnessOptions has gen_kwargs={given!r} with do_sample and without a temperature, which many tasks have "
            'as 0: they would stay greedy. Add "temperature": 1.0, or another.'
        )
