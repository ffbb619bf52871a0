"""Create the common kinds of steps: default_download -> default_tokenize -> default_train -> default_eval.

The names are Marin's. Each function returns a Step and does nothing else. Steps are named by kind ("raw/",
"tokenized/", "checkpoints/", "evaluation/"). The requirements of a step (extras, resources, resumability) are set here,
so an experiment states only its recipe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.download.files import DownloadFilesConfig, download_files
from marin_assets.stages.evaluate.lm_eval import LmEvalConfig, evaluate_with_lm_eval
from marin_assets.stages.snapshot.take_snapshot import TakeSnapshotConfig, take_snapshot
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.train.exports import FOLDER as EXPORTS
from marin_assets.stages.train.mixture import Mixture, plain_mixture, versioned_mixture
from marin_assets.stages.train.mixture_checks import check_mixture
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.expectation import Expectation
from marin_assets.step.partitions.reads import partitions_folder
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import KEY, InputName, PartitionName, output_path_of, unwrap_versioned_value, versioned
from marin_resources.hardware import Resources, cpu


def default_download(
    name: str,
    source: str,
    *,
    expected_sha256: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "raw/<name>", which copies `source` (an fsspec URL, a glob or a folder), with checksums.

    `source` and `expected_sha256` (file name -> digest) enter the version. The step fails if a file has another digest.
    With `partitions`, `source` has the key in it: this_partition(form="s3://crawls/{partition}/wet").
    """
    config = DownloadFilesConfig(source=source if isinstance(source, PartitionName) else versioned(source))
    if expected_sha256:
        config = dataclasses.replace(config, expected_sha256=versioned(dict(expected_sha256)))
    return Step(
        name=f"raw/{name}",
        fn=download_files,
        config=config,
        resumable=True,
        override_output_path=override_output_path,
        expectations=expectations,
        partitions=partitions,
    )


def default_tokenize(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the documents in `dataset`, split by page.

    It has the partitions of `dataset`, if that is a step with partitions.
    """
    config = TokenizeConfig(documents_path=output_path_of(dataset), tokenizer_path=output_path_of(tokenizer))
    if validation_fraction is not None:
        config = dataclasses.replace(config, validation_fraction=versioned(validation_fraction))
    return Step(
        name=f"tokenized/{name}",
        fn=tokenize,
        config=config,
        extras=("curate", "train"),
        resumable=True,
        expectations=expectations,
        partitions=_partitions_of(dataset),
    )


def default_snapshot(name: str, of: Step, partitions: Partitions) -> Step:
    """Return the step "snapshots/<name>": for each of its own keys, the list of the partitions of `of` that were
    complete when the key was made.

    What reads it has the same `partitions`, such as dynamic("snapshots") or monthly("2026-01-01").
    """
    config = TakeSnapshotConfig(partitions_path=partitions_folder(of))
    return Step(name=f"snapshots/{name}", fn=take_snapshot, config=config, partitions=partitions)


def default_train(
    name: str,
    tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture,
    model_config: LlamaSpec,
    train_config: TrainLmConfig,
    *,
    resources: Resources | None = None,
    tags: Mapping[str, str] | None = None,
    override_output_path: str | None = None,
    expectations: Sequence[Expectation] = (),
    partitions: Partitions | None = None,
) -> Step:
    """Return the step "checkpoints/<name>", which trains a Llama on one tokenized set, on several by name, or on a
    Mixture (`marin_assets.mixtures`).

    A snapshot of a tokenized set is one too: its partitions are trained on. It needs the snapshot's `partitions`.

    `train_config` has the number of steps, batch size, optimizer, weights of sets by name and the tokenizer's path. Its
    components, mixture and model are replaced by `tokenized` and `model_config`. Raises InputError for a mixture that
    this training could not draw.
    """
    config = dataclasses.replace(train_config, model=model_config, **_data(tokenized))
    if isinstance(tokenized, Mixture):
        _check_mixture(config, tokenized)
    return Step(
        name=f"checkpoints/{name}",
        fn=train_lm,
        config=config,
        resources=resources or cpu(),
        extras=_extras_on(resources, "train"),
        resumable=True,
        tags=tags or {},
        override_output_path=override_output_path,
        expectations=expectations,
        partitions=partitions,
    )


def default_eval(
    step: Step | InputName,
    evals: Sequence[str] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: str | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "evaluation/<its name>": lm-eval results of the model that `step` exports.

    `evals` are names of tasks in lm-eval or in the YAML files below `include_path`; the held-out tasks if None. Raises
    ValueError for a hardcoded path.
    """
    of = step.step if isinstance(step, InputName) else step
    if of is None:
        raise ValueError(f"default_eval({step!r}) got a hardcoded path, expected a step that trains. Pass the step.")
    model = output_path_of(step) if isinstance(step, InputName) and step.name else output_path_of(of, "hf")
    return Step(
        name=f"evaluation/{of.name.removeprefix('checkpoints/')}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(model, evals, held_out, include_path, max_eval_instances),
        resources=resources or cpu(),
        extras=_extras_on(resources, "train", "evaluate"),
        expectations=expectations,
    )


def default_checkpoint_evals(
    step: Step,
    partitions: Partitions,
    evals: Sequence[str] | None = None,
    *,
    held_out: Step | InputName | None = None,
    include_path: str | None = None,
    resources: Resources | None = None,
    max_eval_instances: int | None = None,
) -> Step:
    """Return the step "checkpoint_evaluation/<its name>": lm-eval results of each model that `step` exports while it
    trains, a partition for each.

    `partitions` is a dynamic set, such as dynamic("nano_checkpoints"), to which the sensor `new_checkpoints` adds
    "step-0000100". The config of `step` has `steps_per_hf_export`. The results do not wait for the training to end.
    Other arguments are those of `default_eval`.
    """
    model = output_path_of(step, f"{EXPORTS}/{KEY}").nonblocking()
    return Step(
        name=f"checkpoint_evaluation/{step.name.removeprefix('checkpoints/')}",
        fn=evaluate_with_lm_eval,
        config=_lm_eval(model, evals, held_out, include_path, max_eval_instances),
        resources=resources or cpu(),
        extras=_extras_on(resources, "train", "evaluate"),
        partitions=partitions,
    )


def _data(tokenized: Step | InputName | Mapping[str, Step | InputName] | Mixture) -> dict[str, Any]:
    if isinstance(tokenized, Mixture):
        return {"components": {}, "mixture": versioned_mixture(tokenized)}
    sets = tokenized if isinstance(tokenized, Mapping) else {"train": tokenized}
    return {"components": {label: output_path_of(step) for label, step in sets.items()}, "mixture": None}


def _check_mixture(config: TrainLmConfig, mixture: Mixture) -> None:
    steps, batch_size, length = map(
        unwrap_versioned_value, (config.num_train_steps, config.train_batch_size, config.model.max_seq_len)
    )
    check_mixture(plain_mixture(mixture), steps=steps, batch_size=batch_size, sequence_length=length)


def _lm_eval(
    model: InputName,
    evals: Sequence[str] | None,
    held_out: Step | InputName | None,
    include_path: str | None,
    max_eval_instances: int | None,
) -> LmEvalConfig:
    config = LmEvalConfig(
        model_path=model,
        held_out_path=output_path_of(held_out) if held_out is not None else None,
        include_path=include_path,
        max_eval_instances=versioned(max_eval_instances),
    )
    return config if evals is None else dataclasses.replace(config, tasks=versioned(tuple(evals)))


def _partitions_of(step: Step | InputName) -> Partitions | None:
    of = step.step if isinstance(step, InputName) else step
    read_whole = isinstance(step, InputName) and step.key is not None
    return None if of is None or read_whole else of.partitions


def _extras_on(resources: Resources | None, *extras: str) -> tuple[str, ...]:
    """The extras, and JAX for the device: JAX without it would compute on the CPU, and let the device idle."""
    if resources is not None and resources.gpu is not None:
        return (*extras, "gpu")
    return (*extras, "tpu") if resources is not None and resources.tpu is not None else extras
