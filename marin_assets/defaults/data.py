"""Create the steps of tokens: tokenize documents, chats and preferences, tokenizers, snapshots."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.stages.snapshot.take_snapshot import TakeSnapshotConfig, take_snapshot
from marin_assets.stages.tokenize.chat.templates import named_template
from marin_assets.stages.tokenize.chat.tokenize_chats import TokenizeChatsConfig, tokenize_chats
from marin_assets.stages.tokenize.chat.tokenize_preferences import TokenizePreferencesConfig, tokenize_preferences
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation, expect
from marin_assets.step.marins_sentences import takes_marins_arguments
from marin_assets.step.partitions.reads import partitions_folder
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.step import Step
from marin_assets.step.values import (
    ConfigError,
    InputName,
    output_path_of,
    unwrap_versioned_value,
    versioned,
)


@checks_arguments("dataset", "tokenizer")
@takes_marins_arguments
def default_tokenize(
    name: str,
    dataset: Step | InputName | str,
    tokenizer: Step | InputName | str,
    *,
    sample_count: int | None = None,
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the documents in `dataset`, split by page.

    It has the partitions of `dataset`, if that is a step with partitions. A text is a URL or an absolute path. With
    `sample_count`, that many documents are drawn first, by the step "samples/<name>". Raises ConfigError for
    a name of the Hugging Face hub.
    """
    documents = _input("dataset", dataset)
    tokenizer_path = output_path_of(_input("tokenizer", tokenizer))
    if sample_count is not None:
        documents = Step(
            name=f"samples/{name}",
            fn=sample_documents,
            config=SampleDocumentsConfig(
                documents_path=output_path_of(documents), count=versioned(unwrap_versioned_value(sample_count))
            ),
            resumable=True,
            partitions=partitions_of(documents),
        )
    config = TokenizeConfig(documents_path=output_path_of(documents), tokenizer_path=tokenizer_path)
    return _tokenized(name, tokenize, config, documents, validation_fraction, expectations)


@checks_arguments()
def default_tokenizer(
    name: str, documents: Step | InputName, *, vocab_size: int, validation_fraction: float = 0.05
) -> Step:
    """Return the step "tokenizers/<name>": a byte-level BPE, trained on what is not held out of the documents."""
    return Step(
        name=f"tokenizers/{name}",
        fn=train_tokenizer,
        config=TrainTokenizerConfig(
            documents_path=output_path_of(documents),
            vocab_size=versioned(vocab_size),
            validation_fraction=versioned(validation_fraction),
        ),
        extras=("curate",),
        expectations=[expect("roundtrip_failures", at_most=0)],
    )


@checks_arguments()
def default_tokenize_chats(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    max_seq_len: int,
    adapter: str = "openai",
    template: str = "plain",
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the chats in `dataset`, for default_sft.

    `adapter` is the shape of its rows, `template` the name of a chat template, `max_seq_len` that of the model.
    """
    config = TokenizeChatsConfig(
        chats_path=output_path_of(dataset),
        tokenizer_path=output_path_of(tokenizer),
        adapter=versioned(adapter),
        chat_template=named_template(template),
        max_seq_len=versioned(max_seq_len),
    )
    return _tokenized(name, tokenize_chats, config, dataset, validation_fraction, expectations)


@checks_arguments()
def default_tokenize_preferences(
    name: str,
    dataset: Step | InputName,
    tokenizer: Step | InputName,
    *,
    max_seq_len: int,
    adapter: str = "chats",
    template: str = "plain",
    validation_fraction: float | None = None,
    expectations: Sequence[Expectation] = (),
) -> Step:
    """Return the step "tokenized/<name>": Levanter caches of the preferences in `dataset`, for default_dpo.

    The arguments are those of `default_tokenize_chats`; the template is that which the model was trained with.
    """
    config = TokenizePreferencesConfig(
        preferences_path=output_path_of(dataset),
        tokenizer_path=output_path_of(tokenizer),
        adapter=versioned(adapter),
        chat_template=named_template(template),
        max_seq_len=versioned(max_seq_len),
    )
    return _tokenized(name, tokenize_preferences, config, dataset, validation_fraction, expectations)


@checks_arguments("of")
def default_snapshot(name: str, of: Step, partitions: Partitions) -> Step:
    """Return the step "snapshots/<name>": for each of its own keys, the list of the partitions of `of` that were
    complete when the key was made.

    What reads it has the same `partitions`, such as dynamic("snapshots") or monthly("2026-01-01").
    """
    config = TakeSnapshotConfig(partitions_path=partitions_folder(of))
    return Step(name=f"snapshots/{name}", fn=take_snapshot, config=config, partitions=partitions)


def _input(argument: str, given: Step | InputName | str) -> Step | InputName:
    """A step, an output of one, or a path. Raises ConfigError for a text that is neither a URL nor an absolute path."""
    if isinstance(given, Step | InputName):
        return given
    if not isinstance(given, str):
        raise ConfigError(f"default_tokenize got {argument}={given!r}, expected a step, a URL or an absolute path.")
    if "://" in given or given.startswith("/"):
        return InputName.hardcoded(given)
    raise ConfigError(
        f"default_tokenize got {argument}={given!r}, expected a step, a URL or an absolute path. A name of the Hugging "
        f"Face hub is downloaded by a step: default_download_hf('{argument}', …). A folder below the prefix is "
        f"InputName.hardcoded({given!r})."
    )


def _tokenized(
    name: str,
    fn: Callable[[Any], Any],
    config: TokenizeConfig | TokenizeChatsConfig | TokenizePreferencesConfig,
    dataset: Step | InputName,
    validation_fraction: float | None,
    expectations: Sequence[Expectation],
) -> Step:
    if validation_fraction is not None:
        config = dataclasses.replace(config, validation_fraction=versioned(validation_fraction))
    return Step(
        name=f"tokenized/{name}",
        fn=fn,
        config=config,
        extras=("curate", "train"),
        resumable=True,
        expectations=expectations,
        partitions=partitions_of(dataset),
    )


def partitions_of(step: Step | InputName) -> Partitions | None:
    """Return the partitions of a step that reads this one key by key."""
    of = step.step if isinstance(step, InputName) else step
    read_whole = isinstance(step, InputName) and step.key is not None
    return None if of is None or read_whole else of.partitions
