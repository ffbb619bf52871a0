"""Create mixtures of tokenized steps: lm_mixture_data_config -> default_train.

The names are Marin's. Each function returns a Mixture whose fields are versioned, or a Step, and does nothing else. A
component is a tokenized step, an output of one, or several of them by name, which are joined to one member.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from marin_assets.defaults import default_train
from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.simple import SimpleTrainConfig, to_train_lm_config
from marin_assets.stages.train.specs.mixture import (
    BlockShuffle,
    Mixture,
    Subset,
    Weights,
    is_varying,
    phase_at,
    phases_of,
    plain_mixture,
    versioned_mixture,
)
from marin_assets.stages.train.specs.mixture_checks import check_recipe
from marin_assets.stages.train.specs.model import ModelSpec, length_before_a_run
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.graph import build_graph
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, VersionedValue, output_path_of, unwrap_versioned_value, versioned

Component = Step | InputName | str | Mapping[str, Step | InputName | str]
BLOCK_SIZE = 2048
"""The block size of Levanter and Marin."""


@checks_arguments()
@takes_marins_arguments
def lm_data_config(
    training_set: Step | InputName,
    permutation_type: str = "feistel",
    *,
    validation_sets: Mapping[str, Component] | None = None,
    shuffle: bool | BlockShuffle = True,
    subsets: Mapping[str, Subset] | None = None,
) -> Mixture:
    """One training set, named by the last segment of its step's name, with sets that are only validated on."""
    of = training_set.step if isinstance(training_set, InputName) else training_set
    name = "train" if of is None else of.name.rpartition("/")[2]
    return lm_mixture_data_config(
        {name: training_set, **(validation_sets or {})},
        {name: 1.0},
        permutation_type,
        shuffle=shuffle,
        subsets=subsets,
    )


@checks_arguments("weights")
@takes_marins_arguments
def lm_mixture_data_config(
    components: Mapping[str, Component],
    weights: Weights,
    permutation_type: str = "feistel",
    *,
    shuffle: bool | BlockShuffle = True,
    missing_weights_are_validation: bool = True,
    mixture_block_size: int = BLOCK_SIZE,
    subsets: Mapping[str, Subset] | None = None,
    stop_strategy: str = "restart",
) -> Mixture:
    """Sets by name, with the share of each. A set without a weight is validated on, and not trained on.

    With missing_weights_are_validation=False, a set without a weight is an error. Raises InputError.
    """
    return _mixture(
        components,
        weights,
        all_weighed=not missing_weights_are_validation,
        permutation_type=permutation_type,
        shuffle=shuffle,
        block_size=mixture_block_size,
        subsets=subsets,
        stop_strategy=stop_strategy,
    )


@checks_arguments("weights_list")
@takes_marins_arguments
def lm_varying_mixture_data_config(
    components: Mapping[str, Component],
    weights_list: Sequence[tuple[int, Weights]],
    permutation_type: str = "feistel",
    *,
    shuffle: bool | BlockShuffle = True,
    missing_weights_are_validation: bool = True,
    mixture_block_size: int = BLOCK_SIZE,
    subsets: Mapping[str, Subset] | None = None,
    stop_strategy: str = "restart",
) -> Mixture:
    """Sets by name, with phases: (first step, weights), in order. Steps are training steps.

    A phase begins with a block: its first step times the batch size is a multiple of `mixture_block_size`. A member
    continues where it stood at the end of the phase before. Raises InputError.
    """
    return _mixture(
        components,
        weights_list,
        all_weighed=not missing_weights_are_validation,
        permutation_type=permutation_type,
        shuffle=shuffle,
        block_size=mixture_block_size,
        subsets=subsets,
        stop_strategy=stop_strategy,
    )


@checks_arguments()
def add_validation_sets_to_mixture(config: Mixture, validation_sets: Mapping[str, Component]) -> Mixture:
    """The mixture with more sets that are only validated on. A set that is a member already stays as it is.

    Raises InputError for a name that the mixture has for other data.
    """
    components = _joined(config.components, _components(validation_sets))
    _require_one_tokenizer(components)
    return replace(config, components=components)


@checks_arguments()
def mixture_for_evaluation(inputs: Mapping[str, Component]) -> Mixture:
    """Sets that are only validated on. It cannot be trained on."""
    components = _components(inputs)
    _require_one_tokenizer(components)
    return versioned_mixture(Mixture(components=components, weights={}))


def interpolate_mixture_configs(mixtures: Sequence[Mixture], weights: Sequence[float]) -> Mixture:
    """The mixture in which each of `mixtures` has the share that `weights` gives it; the shares sum to 1.

    Their other fields are the same. Phases begin where any of the mixtures has one. Raises InputError.
    """
    if not mixtures:
        raise InputError("interpolate_mixture_configs got no mixture, expected at least one.")
    _check_shares(weights, len(mixtures))
    plain = [plain_mixture(mixture) for mixture in mixtures]
    components: Mapping[str, Any] = {}
    for mixture, fixed in zip(mixtures, plain, strict=True):
        check_recipe(replace(fixed, components=dict.fromkeys(fixed.components, "")))
        components = _joined(components, mixture.components)
        for field in fields(Mixture):
            if field.name not in ("components", "weights") and getattr(fixed, field.name) != getattr(
                plain[0], field.name
            ):
                raise InputError(
                    f"The mixtures to interpolate have {field.name}={getattr(plain[0], field.name)!r} and "
                    f"{getattr(fixed, field.name)!r}, expected the same. Set it with dataclasses.replace()."
                )
    _require_one_tokenizer(components)
    phases = [phases_of(mixture.weights) for mixture in plain]
    starts = sorted({phase.first_step for schedule in phases for phase in schedule})
    at_starts = [
        (start, interpolate_mixture_weights([phase_at(schedule, start).weights for schedule in phases], weights))
        for start in starts
    ]
    combined = at_starts if any(is_varying(mixture.weights) for mixture in plain) else at_starts[0][1]
    return versioned_mixture(replace(plain[0], components=components, weights=combined))


def interpolate_mixture_weights(mixture_weights: Sequence[Weights], weights: Sequence[float]) -> dict[str, float]:
    """Weights that sum to 1: those of each mixture, first divided by their sum, times its share."""
    _check_shares(weights, len(mixture_weights))
    combined: dict[str, float] = {}
    for own_weights, share in zip(mixture_weights, weights, strict=True):
        total = sum(own_weights.values())
        if not total > 0:
            raise InputError(f"The weights {dict(own_weights)!r} sum to {total}, expected a sum above 0.")
        for name, weight in own_weights.items():
            combined[name] = combined.get(name, 0.0) + share * weight / total
    return dict(sorted(combined.items()))


@checks_arguments("model_config", "train_config")
def simulated_epoching_train(
    name: str,
    tokenized: Step | InputName | Mixture,
    model_config: LlamaSpec | ModelSpec,
    train_config: TrainLmConfig | SimpleTrainConfig,
    target_budget: int,
    **settings: Any,
) -> Step:
    """Return the step "checkpoints/<name>", in which each member is repeated as often as in a training on
    `target_budget` tokens with the same weights.

    Each member is cut to the share that this training's tokens are of `target_budget`. `settings` are those of
    `default_train`.
    """
    mixture = tokenized if isinstance(tokenized, Mixture) else lm_data_config(tokenized)
    model = model_config.value if isinstance(model_config, VersionedValue) else model_config
    if isinstance(train_config, SimpleTrainConfig):
        config = to_train_lm_config(train_config, components={}, model=model, tokenizer_path="")
    else:
        config = replace(train_config, model=model)
    steps, batch_size = map(unwrap_versioned_value, (config.num_train_steps, config.train_batch_size))
    length = length_before_a_run(config)
    assert length is not None, "a LlamaSpec or a ModelSpec has its length"
    simulated = replace(
        mixture,
        experiment_budget_tokens=versioned(steps * batch_size * length),
        target_budget_tokens=versioned(target_budget),
    )
    check_recipe(plain_mixture(simulated))
    return default_train(name, simulated, model_config, train_config, **settings)


def _mixture(components: Mapping[str, Component], weights: Any, *, all_weighed: bool, **settings: Any) -> Mixture:
    paths = _components(components)
    mixture = plain_mixture(Mixture(components=paths, weights=weights, **settings))
    check_recipe(mixture)
    _require_one_tokenizer(paths)
    weights = mixture.weights
    for of_phase in [phase for _, phase in weights] if is_varying(weights) else [weights]:
        if all_weighed and (missing := sorted(set(paths) - set(of_phase))):
            raise InputError(
                f"The mixture's weights do not name {missing}, and missing_weights_are_validation is False. Give each "
                "a weight, 0 for a set to validate on."
            )
    return versioned_mixture(mixture)


def _components(components: Mapping[str, Component]) -> dict[str, Any]:
    """Paths in place of steps."""
    return {
        name: _components(member) if isinstance(member, Mapping) else _path(member)  # type: ignore[arg-type]
        for name, member in components.items()
    }


def _path(member: Step | InputName | str) -> str:
    return output_path_of(member) if isinstance(member, Step | InputName) else member


def _joined(components: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    for name in set(components) & set(others):
        if _identity(components[name]) != _identity(others[name]):
            raise InputError(f"Two mixtures have other data for the name {name!r}. Rename one of them.")
    return {**others, **components}


def _require_one_tokenizer(components: Mapping[str, Any]) -> None:
    """Raise InputError for steps with another tokenizer. Of paths alone only the training sees it, before it begins."""
    member_by_tokenizer: dict[Any, str] = {}
    for name, member in components.items():
        for part in member.values() if isinstance(member, Mapping) else (member,):
            step = part.step if isinstance(part, InputName) else None
            tokenizer = getattr(getattr(step, "config", None), "tokenizer_path", None)
            if tokenizer is not None:
                member_by_tokenizer.setdefault(_identity(tokenizer), name)
    if len(member_by_tokenizer) > 1:
        (first, first_member), (second, second_member), *_ = member_by_tokenizer.items()
        raise InputError(
            f"The mixture's members {first_member!r} and {second_member!r} are tokenized with other tokenizers, "
            f"{first!r} and {second!r}, expected one. Tokenize all with the model's tokenizer."
        )


def _identity(member: Any) -> Any:
    """The identity of a component or a path, comparable: of an output its version."""
    if isinstance(member, Mapping):
        return tuple((key, _identity(part)) for key, part in sorted(member.items()))
    if not isinstance(member, InputName) or member.step is None:
        return member.name if isinstance(member, InputName) else member
    step: Any = member.step
    version = build_graph([step])[step].version.path
    return "/".join(filter(None, (version, member.name, member.key)))


def _check_shares(shares: Sequence[float], mixtures: int) -> None:
    if len(shares) != mixtures:
        raise InputError(f"There are {mixtures} mixtures and {len(shares)} shares, expected one for each.")
    if any(isinstance(share, bool) or not isinstance(share, int | float) or not share >= 0 for share in shares):
        raise InputError(f"The shares of the mixtures are {list(shares)!r}, expected numbers of 0 or more.")
    if not math.isclose(sum(shares), 1.0, rel_tol=1e-6):
        raise InputError(f"The shares of the mixtures are {list(shares)!r}, which sum to {sum(shares)}, expected 1.")
