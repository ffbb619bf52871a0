"""Names of Marin's (marin-community/marin) that are other ones here, with the ones here: data alone.

`marins_sentences.py` makes the sentence for an import, or for an argument, of them. The page for people is
docs/how-to/come-from-marin.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_STEPS = "Step(name=…, fn=…, config=…): write `from marin_assets import Step as ExecutorStep`"
_RESOURCES = (
    "Resources, of cpu(), gpu() and tpu(): write `from marin_assets import Resources as ResourceConfig`, whose "
    "with_cpu(), with_gpu() and with_tpu() are the same"
)
_STATUS = "the status and the lease beside each output; `marin status` shows them"
_SIMPLE = "SimpleTrainConfig: write `from marin_assets.stages.train.simple import SimpleTrainConfig`"
_REQUIREMENTS = "a plain function as the fn of a Step, which states resources=, extras= and packages= itself"
_VALIDATION = "validation_sets= of lm_data_config, or add_validation_sets_to_mixture, both of marin_assets.mixtures"
_HUB_SPEC = "default_download_hf(name, '<id>', '<revision>', globs=[…]), a step to pass as dataset="

_DOWNLOAD = (
    "default_download_hf(name, '<id>', '<revision>', globs=[…]), which verifies each file, or "
    "source='hf://datasets/<id>@<revision>/<glob>'; both enter the version"
)

IMPORTS: Mapping[str, str] = {
    # the executor
    "ExecutorStep": _STEPS,
    "StepSpec": "Step, whose config names its inputs with output_path_of()",
    "ArtifactStep": "Step; `marin adopt` takes data that exist",
    "Executor": "executor_main(steps), or `marin run`",
    "StepRunner": "executor_main(steps), or `marin run`",
    "ExecutorMainConfig": "the options of the script: --prefix, --dry-run, --run-only, --max-concurrent",
    "ExecutorInfo": "experiments/<script>-<hash>.json, a file below the prefix",
    "ExecutorStepInfo": "the record of an output, .executor_info",
    "StatusActor": _STATUS,
    "get_executor_step": "`input.step` of an InputName",
    "OutputName": "this_output_path(), or THIS_OUTPUT_PATH as a default",
    "VersionedValue": "versioned(value)",
    "MirroredValue": "mirrored(path, budget_gb=10)",
    "compute_output_path": "`marin path STEP`",
    "marin_prefix": "MARIN_PREFIX, or --prefix of a script; InputName.hardcoded(path) is a path below it",
    "remote": _REQUIREMENTS,
    "RemoteCallable": _REQUIREMENTS,
    "disk_cache": "a Step: its output is kept",
    # resources
    "ResourceConfig": _RESOURCES,
    "TpuPodConfig": "tpu('v4-128', slices=2), with tpu_type and slice_count",
    "GpuConfig": "gpu('H100', 8), with accelerator_type and gpu_count",
    "CpuOnlyConfig": "cpu(4, memory_gib=16)",
    # data
    "HfDatasetSpec": _HUB_SPEC,
    "DownloadConfig": "default_download of marin_assets.defaults, or DownloadFilesConfig of its stage",
    "TokenizeConfig": "default_tokenize of marin_assets.defaults",
    "HfTokenizeConfig": _HUB_SPEC,
    "TextLmDatasetFormat": "what default_tokenize takes: documents, which the stage `ingest` makes of any text column",
    "ChatLmDatasetFormat": "default_tokenize_chats of marin_assets.defaults, with an adapter and a chat template",
    "TokenizerStep": "Step",
    "proofpile_2": "proof_pile_2 of marin_assets.datasets, by subset",
    "finemath_3_plus": "finemath['finemath-3plus'] of marin_assets.datasets",
    "tokenize_dolma": "dolma[subset].tokenized(tokenizer), of marin_assets.datasets",
    "tokenize_nemotron": "nemotron_cc[split].tokenized(tokenizer), of marin_assets.datasets",
    "DOLMA_DATASETS": "dolma of marin_assets.datasets, by subset",
    "NEMOTRON_DATASETS": "nemotron_cc of marin_assets.datasets, by split",
    "PALOMA_DATASETS_TO_DIR": "paloma of marin_assets.datasets, by source",
    "get_instruction_dataset": "chats[name] of marin_assets.datasets, with Marin's names",
    "get_preference_dataset": "preferences[name] of marin_assets.datasets, with the split behind the name",
    "INSTRUCTION_DATASET_NAME_TO_CONFIG": "chats of marin_assets.datasets, by the same names",
    "PREFERENCE_DATASET_NAME_TO_CONFIG": "preferences of marin_assets.datasets, with the split behind the name",
    "default_validation_sets": _VALIDATION,
    "paloma_tokenized": f"default_perplexity of marin_assets.defaults, with layouts; or {_VALIDATION}",
    "uncheatable_eval_tokenized": f"default_perplexity of marin_assets.defaults, with layouts; or {_VALIDATION}",
    # training
    "SimpleSFTConfig": f"{_SIMPLE}, for default_sft too",
    "SimpleDPOConfig": f"{_SIMPLE}, or TrainDpoConfig with beta, for default_dpo",
    "AnnealConfig": f"{_SIMPLE}, and of=, tokenized= and at_step= of default_anneal",
    "TrainLmOnPodConfig": "TrainLmConfig of marin_assets.stages.train.train_lm, and resources= of default_train",
    "LlamaConfig": "ModelSpec of marin_assets.stages.train.specs.model, with the same fields and a family",
    "default_lm_log_probs": "default_perplexity of marin_assets.defaults, with the loss of every token",
    "default_save_logprobs": "default_perplexity of marin_assets.defaults, with the loss of every token",
    "SpeedrunConfig": "default_speedrun(name, default_train(…), author=Author(name=…), description=…)",
    "default_scaling_law_pred": "default_comparison of marin_assets.defaults, which ranks runs and fits no law",
    # evaluation
    "EvalTaskConfig": "EvalTask of marin_assets.stages.evaluate.suites",
    "EvaluationConfig": "default_eval of marin_assets.defaults",
}
"""Name -> what it is here."""

HOMES: Mapping[str, tuple[str, ...]] = {
    "marin_assets.defaults": (
        "default_anneal",
        "default_download",
        "default_dpo",
        "default_eval",
        "default_sft",
        "default_speedrun",
        "default_tokenize",
        "default_train",
    ),
    "marin_assets.datasets": (
        "dclm_baseline",
        "fineweb",
        "fineweb_edu",
        "paloma",
        "starcoderdata",
        "uncheatable_eval",
    ),
    "marin_assets.mixtures": (
        "add_validation_sets_to_mixture",
        "interpolate_mixture_configs",
        "interpolate_mixture_weights",
        "lm_data_config",
        "lm_mixture_data_config",
        "lm_varying_mixture_data_config",
        "mixture_for_evaluation",
        "simulated_epoching_train",
    ),
    "marin_assets.stages.evaluate.suites": ("CORE_TASKS", "CORE_TASKS_PLUS_MMLU", "MMLU_TASKS"),
    "marin_assets.stages.train.simple": ("SimpleTrainConfig",),
    "marin_assets.stages.train.specs.presets": (
        "llama_nano",
        "llama_30m",
        "llama_50m",
        "llama_75m",
        "llama_150m",
        "llama_300m",
        "llama_600m",
        "llama_1_4b",
        "llama_1_9b",
        "llama_3_2_1b",
        "llama_3_5b",
        "llama_8b",
        "llama_13b",
        "llama_24b",
        "llama_32b",
        "llama_56b",
        "llama_70b",
    ),
}
"""Module of ours -> the names that it has under Marin's name."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of Marin's that a function here lacks."""

    here: str
    """The argument to write here."""
    is_default: Callable[[Any], bool] = lambda value: False
    """Whether the value requests what happens here anyway, so that it may be passed."""


def _is_none(value: Any) -> bool:
    return value is None


def _is_off(value: Any) -> bool:
    """None, False, or an empty list."""
    return value is None or value is False or (isinstance(value, list | tuple) and not value)


def _is_plain_text(value: Any) -> bool:
    """Levanter's TextLmDatasetFormat() of the column "text", which is not imported: that takes seconds."""
    return type(value).__name__ == "TextLmDatasetFormat" and getattr(value, "text_key", None) == "text"


_WANDB = Argument(here="trackers=(Wandb(project=…),) of the train_config", is_default=_is_none)
_MIXTURE = {
    "num_validation_sequences": Argument(here="validation_fraction= of default_tokenize", is_default=_is_off),
    "shuffle_before_trainval_split": Argument(here="validation_fraction= of default_tokenize, a split by hash"),
    "max_train_batches": Argument(here="subsets={name: Subset(sequences=batches * batch_size)}", is_default=_is_off),
    "include_raw_paths": Argument(here="the record of the output, which names all its inputs", is_default=_is_off),
}
_ON_THE_COMMAND_LINE = Argument(here="an option of the script, such as --dry-run, --run-only or --prefix")
_PROFILER = Argument(
    here="nothing: a training keeps no profile; its metrics.jsonl has the time of steps", is_default=_is_off
)

ARGUMENTS: Mapping[str, Mapping[str, Argument]] = {
    "Step": {
        "pip_dependency_groups": Argument(
            here="extras=('train',) for extras of pyproject.toml, and packages=('lxml>=5',) for other requirements",
            is_default=_is_off,
        ),
        "env_vars": Argument(
            here="env=('HF_TOKEN',), names alone: a value is read where the step runs, and never stored",
            is_default=lambda value: not value,
        ),
    },
    "executor_main": {
        "config": _ON_THE_COMMAND_LINE,
        "prefix": _ON_THE_COMMAND_LINE,
        "dry_run": _ON_THE_COMMAND_LINE,
        "run_only": _ON_THE_COMMAND_LINE,
        "force_run_failed": _ON_THE_COMMAND_LINE,
        "executor_info_base_path": _ON_THE_COMMAND_LINE,
    },
    "default_download": {
        "hf_dataset_id": Argument(here=_DOWNLOAD),
        "revision": Argument(here=_DOWNLOAD),
        "hf_urls_glob": Argument(here=_DOWNLOAD),
    },
    "default_tokenize": {
        "format": Argument(
            here="dataset= of documents, which the stage `ingest` makes of any text column; default_tokenize_chats "
            "for chats",
            is_default=_is_plain_text,
        ),
        "is_validation": Argument(
            here="a set without a weight in lm_mixture_data_config, which is validated on alone", is_default=_is_off
        ),
    },
    "default_train": {
        "eval_harness_tasks": Argument(here="default_eval(step, CORE_TASKS), a step of its own", is_default=_is_off),
        "use_default_validation": Argument(here=_VALIDATION, is_default=_is_off),
        "wandb_name": _WANDB,
        "wandb_group": _WANDB,
    },
    "default_sft": {
        "tokenized": Argument(here="chats=, a step of default_tokenize_chats"),
        "sft_config": Argument(here="train_config=SimpleTrainConfig(…), and start=, the model to begin with"),
    },
    "default_dpo": {
        "tokenized": Argument(here="preferences=, a step of default_tokenize_preferences"),
        "dpo_config": Argument(here="train_config=TrainDpoConfig(…) or SimpleTrainConfig(…), and start="),
    },
    "default_anneal": {
        "anneal_config": Argument(here="of=, the step that trained; tokenized=, the mixture; train_config="),
    },
    "default_eval": {
        "resource_config": Argument(here="resources=tpu('v5p-8')"),
        "apply_chat_template": Argument(here="options=HarnessOptions(…)", is_default=_is_off),
        "discover_latest_checkpoint": Argument(
            here="the model that the step exports; default_checkpoint_evals evaluates each checkpoint"
        ),
    },
    "lm_data_config": _MIXTURE,
    "lm_mixture_data_config": _MIXTURE,
    "lm_varying_mixture_data_config": _MIXTURE,
    "SimpleTrainConfig": {
        "tpu_type": Argument(here="resources=tpu('v4-128')"),
        "node_count": Argument(here="resources=tpu('v4-128', slices=2)"),
        "steps_per_export": Argument(here="steps_per_checkpoint="),
        "steps_per_task_eval": Argument(
            here="steps_per_hf_export= and default_checkpoint_evals, which evaluates each export", is_default=_is_off
        ),
        "optimizer_config": Argument(here="optimizer='muon' and optimizer_fields={…}", is_default=_is_off),
        "allow_partial_checkpoint": Argument(
            here="levanter={'trainer.allow_partial_checkpoint': True}", is_default=_is_off
        ),
        "int8": Argument(here="precision='p=f32,c=bfloat16'; no training here is quantized", is_default=_is_off),
        "profiler": _PROFILER,
        "profiler_start_step": _PROFILER,
        "profiler_num_steps": _PROFILER,
    },
}
"""Function or class of ours -> argument of Marin's -> what to write here."""
