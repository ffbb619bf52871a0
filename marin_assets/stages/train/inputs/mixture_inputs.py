"""Check the caches of a mixture's members, before jax and Levanter are loaded (3 s).

In:  a Mixture with paths.   Out: an InputError if they do not fit, and what each member has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from marin_assets.documents.caches.token_cache import LEDGER
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.inputs.token_inputs import check_cache, count_tokens, expand_snapshots, tokenizer_digest
from marin_assets.stages.train.specs.mixture import Mixture, drawn_members, expected_draws, phases_of
from marin_assets.stages.train.specs.mixture_checks import check_mixture, check_mixture_in
from marin_assets.stages.train.specs.start import continues_optimizer
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

log = logging.getLogger(__name__)


def checked_mixture(config: TrainLmConfig, mixture: Mixture, length: int) -> Mixture:
    """The mixture with its snapshots expanded. Raises InputError unless it can be drawn as it is written, in sequences
    of `length` tokens.

    A member with a weight needs a train side, one without a weight a validation side. A member that is trained on and
    has no validation side is not evaluated; at least one member is.
    """
    if config.components or config.train_weights is not None:
        raise InputError(
            "The config has a mixture and also components or train_weights, expected one of them. The members and "
            "weights of a mixture are in the mixture."
        )
    check_mixture(
        mixture,
        steps=config.num_train_steps,
        batch_size=config.train_batch_size,
        sequence_length=length,
    )
    check_mixture_in(mixture, loop=config.loop, optimizer_goes_on=continues_optimizer(config.start))
    mixture = _expanded(mixture)
    digest = tokenizer_digest(config.tokenizer_path)
    drawn = drawn_members(phases_of(mixture.weights))
    for member, name, path in caches_of(mixture):
        if member in drawn:
            check_cache(name, join(path, "train"), digest, config.tokenizer_path, length)
        if member not in drawn and not has_validation(path):
            raise InputError(
                f"Member {name!r} has no weight, so it is only validated on, and {path!r} has no validation side. Give "
                "it a weight, leave it out, or tokenize it with a validation_fraction above 0."
            )
        if has_validation(path):
            check_cache(name, join(path, "validation"), digest, config.tokenizer_path, length)
    for name in drawn:
        _check_length(mixture, name, length)
    without = sorted({name for _, name, path in caches_of(mixture) if not has_validation(path)})
    if len(without) == len(list(caches_of(mixture))):
        raise InputError(
            f"None of the mixture's members {without} has a validation side, expected at least one. Add a validation "
            "set, or tokenize with a validation_fraction above 0."
        )
    if without:
        log.info("not evaluated, as they have no validation side: %s", ", ".join(without))
    _log_table(mixture_table(config, mixture, length))
    return mixture


def at_paths(mixture: Mixture, path_of: Callable[[str], str]) -> Mixture:
    """The mixture, expanded, with other paths in place of its own."""
    return replace(
        mixture,
        components={name: {key: path_of(path) for key, path in caches.items()} for name, caches in _members(mixture)},
    )


def mixture_table(config: TrainLmConfig, mixture: Mixture, length: int) -> dict[str, dict[str, float]]:
    """The draws of each member in the whole training: its share, its sequences, and how often each is drawn."""
    draws = expected_draws(mixture, config.num_train_steps, config.train_batch_size)
    total = sum(draws.values())
    table = {}
    for name, drawn in draws.items():
        sequences = sequences_of(mixture, name, length)
        table[name] = {"share": drawn / total, "sequences": sequences, "epochs": round(drawn / sequences, 4)}
    return table


def sequences_of(mixture: Mixture, name: str, sequence_length: int) -> int:
    """The sequences of a member that are drawn from: those of its subset, cut to the simulated budget."""
    part = (mixture.subsets or {}).get(name)
    if part is None:
        count = _sequences_in(mixture, name, sequence_length)
    else:
        count = subset_length(part.tokens, part.sequences, sequence_length)
    if mixture.experiment_budget_tokens is None or mixture.target_budget_tokens is None:
        return count
    return int(count * (mixture.experiment_budget_tokens / mixture.target_budget_tokens))  # as Levanter cuts it


def subset_length(tokens: int | None, sequences: int | None, sequence_length: int) -> int:
    """The whole sequences of a subset."""
    return sequences if sequences is not None else (tokens or 0) // sequence_length


def caches_in(config: TrainLmConfig) -> Mapping[str, str]:
    """Name -> path of each cache of a training: of its components, or of its expanded mixture."""
    if config.mixture is None:
        return config.components
    return {name: path for _, name, path in caches_of(config.mixture)}


def caches_of(mixture: Mixture) -> Iterator[tuple[str, str, str]]:
    """Yield member, name and path of each cache of an expanded mixture. The name is "member/key" of one of several."""
    for member, caches in _members(mixture):
        for key, path in caches.items():
            yield member, f"{member}/{key}" if key else member, path


def has_validation(path: str) -> bool:
    """Whether a tokenized output has a validation side."""
    return exists(join(path, "validation", LEDGER))


def _members(mixture: Mixture) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield name and caches of each member of an expanded mixture. The key of a single cache is empty."""
    for name, member in mixture.components.items():
        yield name, {"": member} if isinstance(member, str) else member


def _expanded(mixture: Mixture) -> Mixture:
    members = {name: _caches(member) for name, member in mixture.components.items()}
    for name, caches in members.items():
        for key in caches:
            if key and f"{name}/{key}" in members:
                raise InputError(
                    f"The mixture has a member {name + '/' + key!r}, and {name!r} has a part {key!r}, which gives the "
                    "same name. Rename one of them."
                )
    return replace(mixture, components=members)


def _caches(member: Any) -> dict[str, str]:
    """The outputs of a member by key. The partitions of a snapshot are named by their keys."""
    parts = {"": member} if isinstance(member, str) else dict(member)
    return {key.removeprefix("/"): path for key, path in expand_snapshots(parts).items()}


def _sequences_in(mixture: Mixture, name: str, sequence_length: int) -> int:
    caches = dict(_members(mixture))[name]
    return sum(count_tokens(path, "train") // sequence_length for path in caches.values())


def _check_length(mixture: Mixture, name: str, sequence_length: int) -> None:
    part, available = (mixture.subsets or {}).get(name), _sequences_in(mixture, name, sequence_length)
    if part is not None and subset_length(part.tokens, part.sequences, sequence_length) > available:
        raise InputError(
            f"The subset of {name!r} is {part!r}, and its train side has only {available} sequences of "
            f"{sequence_length} tokens. Take at most sequences={available}, or leave the subset out."
        )
    if not sequences_of(mixture, name, sequence_length):
        ratio = f"{mixture.experiment_budget_tokens} / {mixture.target_budget_tokens}"
        raise InputError(
            f"Member {name!r} would have no sequence left: the simulated budget takes {ratio} of {available} "
            "sequences. Give it more data, or take a larger experiment_budget_tokens."
        )


def _log_table(table: Mapping[str, Mapping[str, float]]) -> None:
    for name, row in table.items():
        log.info(
            "mixture: %s %.2f %%, %d sequences, %.3g epochs", name, 100 * row["share"], row["sequences"], row["epochs"]
        )
