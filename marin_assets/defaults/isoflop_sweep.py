"""Create the trainings of an isoflop sweep: budgets of training FLOPs by sizes of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.defaults.scaling_runs import BUDGET, model_parts
from marin_assets.defaults.sweep import GridPoint
from marin_assets.defaults.training import Tags, Tokenized, default_train
from marin_assets.stages.report.scaling_runs.run_row import COUNTS
from marin_assets.stages.scaling.errors import ScalingError
from marin_assets.stages.scaling.isoflop import (
    BestSize,
    Candidate,
    PlannedRun,
    Rule,
    budget_text,
    deepseek_rule,
    plan_run,
    sizes_near,
    sizes_of_budgets,
)
from marin_assets.stages.train.config import LlamaSpec
from marin_assets.stages.train.simple import SimpleTrainConfig
from marin_assets.stages.train.sizes import ModelSize, size_of
from marin_assets.stages.train.specs.model import ModelSpec
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.values import without_versions
from marin_resources.hardware.resources import Resources
from marin_resources.types.near_names import expected_one_of

Sizes = Mapping[str, LlamaSpec | ModelSpec]


@dataclass(frozen=True)
class IsoflopPoint(GridPoint):
    """A training of a sweep, with what is planned of it."""

    plan: PlannedRun


@checks_arguments("tokenized", "rule")
def isoflop(
    name: str,
    tokenized: Tokenized,
    budgets: Sequence[float] | Mapping[float, Sequence[str]],
    sizes: Sizes,
    *,
    vocab_size: int,
    train_config: SimpleTrainConfig,
    rule: Rule = deepseek_rule,
    around: BestSize | None = None,
    per_budget: int = 5,
    params: str = "with_head",
    resources: Resources | Mapping[str, Resources] | None = None,
    tags: Tags | None = None,
) -> dict[str, IsoflopPoint]:
    """Return a training for each budget and size, by a readable label: "flops=1e18,size=300m".

    `budgets` are training FLOPs, forward and backward, as Levanter counts them; a mapping has the names of the sizes of
    each. `sizes` are models by name, and `vocab_size` the tokens of their tokenizer. With `around`, each budget has the
    `per_budget` sizes around its best one, whose number of parameters is counted by `params` (default_scaling_runs).
    Each run has the whole number of batches that is nearest to its budget; its FLOPs are those of its tokens (`plan`).
    `rule` chooses learning rate and batch in place of those of `train_config`. `resources` may be those of each size.
    The steps are named "checkpoints/<name>/<label>", and none depends on the other budgets and
    sizes: one that is added computes its own runs.

    Raises ScalingError for budgets or sizes that are empty, repeated or too small.
    """
    points = {}
    _require_different(sizes, vocab_size)
    chosen = sizes_of_budgets(budgets, list(sizes))
    if around is not None:
        chosen = sizes_near(around, budgets, _params_of_sizes(sizes, vocab_size, params), per_budget)
    for budget, names in chosen.items():
        for size in names:
            plan = _planned_run(size, sizes[size], budget, vocab_size, train_config, rule, params)
            label = f"{BUDGET}={budget_text(budget)},size={size}"
            step = default_train(
                f"{name}/{label}",
                tokenized,
                sizes[size],
                _with_settings(train_config, plan),
                resources=_resources_of(size, resources),
                tags=tags,
                vocab_size=vocab_size,
            )
            points[label] = IsoflopPoint(step, {BUDGET: budget, "size": size}, plan)
    return points


def _planned_run(
    size: str, model: LlamaSpec | ModelSpec, budget: float, vocab_size: int, train_config: Any, rule: Rule, params: str
) -> PlannedRun:
    """The run of a model for a budget. Raises ScalingError for a budget of fewer than 10 batches."""
    plain = without_versions(model)
    seq_len = train_config.train_seq_len or plain.max_seq_len
    counted = size_of(dataclasses.replace(plain, max_seq_len=seq_len), vocab_size)
    counts = model_parts(plain).counts(counted.parameters)
    _require_count(params)
    candidate = Candidate(
        budget=budget,
        params=counted.parameters,
        params_without_embeddings=counts["without_embeddings"],
        flops_per_token=counted.flops_per_token,
        seq_len=seq_len,
    )
    return plan_run(size, candidate, rule(candidate), counts[params])


def _params_of_sizes(sizes: Sizes, vocab_size: int, params: str) -> dict[str, int]:
    _require_count(params)
    plain = {size: without_versions(model) for size, model in sizes.items()}
    return {
        size: model_parts(model).counts(size_of(model, vocab_size).parameters)[params] for size, model in plain.items()
    }


def _require_count(params: str) -> None:
    if params not in COUNTS:
        raise ScalingError(f"params is {params!r}, {expected_one_of(params, COUNTS)}")


def _with_settings(train_config: SimpleTrainConfig, plan: PlannedRun) -> SimpleTrainConfig:
    own: dict[str, Any] = {
        "num_train_steps": plan.steps,
        "train_batch_size": plan.settings.batch_size,
        "learning_rate": plan.settings.learning_rate,
    }
    allowed = [spec.name for spec in dataclasses.fields(train_config) if spec.name not in own]
    for name in plan.settings.further:
        if name not in allowed:
            raise ScalingError(
                f"The rule gives the size {plan.size!r} the further setting {name!r}, {expected_one_of(name, allowed)}"
            )
    return dataclasses.replace(train_config, **plan.settings.further, **own)


def _require_different(sizes: Sizes, vocab_size: int) -> None:
    if vocab_size < 1:
        raise ScalingError(f"vocab_size is {vocab_size}, expected the number of tokens of the tokenizer.")
    seen: dict[ModelSize, str] = {}
    for size, model in sizes.items():
        first = seen.setdefault(size_of(without_versions(model), vocab_size), size)
        if first != size:
            raise ScalingError(
                f"The sizes {first!r} and {size!r} have the same parameters and FLOPs, expected different models. "
                "Remove one."
            )


def _resources_of(size: str, resources: Resources | Mapping[str, Resources] | None) -> Resources | None:
    if not isinstance(resources, Mapping):
        return resources
    if size not in resources:
        raise ScalingError(f"resources lacks the size {size!r}, expected those of each size.")
    return resources[size]
