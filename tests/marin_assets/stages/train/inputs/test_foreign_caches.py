"""Caches as Levanter and Marin write them are trained on, if their rows are those of the tokenizer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from levanter_caches import write_levanter_cache
from random_llama import write_tokenizer
from tokenizer_settings import change_json

from marin_assets.stages.train.errors import InputError
from marin_assets.stages.train.inputs.token_inputs import check_inputs, count_tokens
from marin_assets.stages.train.metrics.metrics import read_metrics
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.step.values import unwrap_versioned_value

SPLITS = ("train", "validation")


def changed(cache: str, folder: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """A copy of a cache, with other ledgers."""
    shutil.copytree(cache, folder)
    for split in SPLITS:
        change_json(folder / split / "shard_ledger.json", change)
    return str(folder)


def without_metadata(ledger: dict[str, Any]) -> None:
    ledger["metadata"] = {"preprocessor_metadata": {}}


def check(path: str, tokenizer: str) -> None:
    check_inputs({"web": path}, None, tokenizer, 32)


@pytest.fixture(scope="module")
def other_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of as many tokens, trained on texts that are written backwards."""
    folder = tmp_path_factory.mktemp("other")
    assert write_tokenizer(folder, [text[::-1] for text in list(topics.values())[:50]]) == 512
    return str(folder)


def test_a_cache_without_digest_is_accepted_by_its_rows(inputs: Any, tmp_path: Path) -> None:
    check(changed(inputs.components["most"], tmp_path / "a", without_metadata), inputs.tokenizer_path)


def test_a_ledger_without_counts_of_fields_is_counted_by_its_arrays(inputs: Any, tmp_path: Path) -> None:
    def change(ledger: dict[str, Any]) -> None:
        without_metadata(ledger)
        del ledger["field_counts"], ledger["field_counts_by_shard"]

    old = changed(inputs.components["most"], tmp_path / "a", change)
    check(old, inputs.tokenizer_path)
    assert count_tokens(old, "train") == inputs.tokens["most"]


def test_a_cache_of_another_tokenizer_is_refused_by_its_rows(inputs: Any, other_tokenizer: str, tmp_path: Path) -> None:
    foreign = changed(inputs.components["most"], tmp_path / "a", without_metadata)
    with pytest.raises(InputError, match=r"of 16 rows only 0 are the tokens that it gives their text.* Pass the tok"):
        check(foreign, other_tokenizer)


def test_a_cache_without_the_tokenizers_eos_is_refused(inputs: Any, tmp_path: Path) -> None:
    foreign = changed(inputs.components["most"], tmp_path / "a", without_metadata)
    shutil.copytree(inputs.tokenizer_path, tmp_path / "tokenizer")
    change_json(tmp_path / "tokenizer/tokenizer_config.json", lambda found: found.update(eos_token="<|pad|>"))
    with pytest.raises(InputError, match=r"of 16 rows only 0 are .* with its eos token at the end"):
        check(foreign, f"{tmp_path}/tokenizer")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"metadata": {"preprocessor_metadata": {"vocab_size": 128256}}},
            "a tokenizer of 128256 tokens, and '.*' has 512",
        ),
        (
            {"field_counts": {"assistant_masks": 9, "input_ids": 9}},
            "with 'assistant_masks', 'input_ids', expected docum",
        ),
        ({"metadata": {"preprocessor_metadata": {"chat_template": None}}}, "expected documents, .* tokenize_chats"),
        ({"is_finished": False}, "that is not finished. Let the program that writes it finish"),
        (
            {"metadata": None, "total_num_rows": 0, "field_counts": {}},
            "has 0 tokens at .* expected at least one sequence",
        ),
    ],
)
def test_what_is_no_finished_cache_of_documents_is_one_sentence(
    inputs: Any, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    def apply(ledger: dict[str, Any]) -> None:
        without_metadata(ledger)
        ledger.update(change)

    with pytest.raises(InputError, match=expected):
        check(changed(inputs.components["most"], tmp_path / "a", apply), inputs.tokenizer_path)


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies
@pytest.mark.parametrize("sharded", [False, True])
def test_caches_that_levanter_and_marin_write_are_trained_on(
    inputs: Any, other_tokenizer: str, tmp_path: Path, sharded: bool
) -> None:
    pages = [text for _, text in sorted(topics.items())]
    sides = dict(zip(SPLITS, (pages[:-20], pages[-20:]), strict=True))
    for split, texts in sides.items():
        write_levanter_cache(tmp_path / "cache" / split, inputs.tokenizer_path, texts, sharded=sharded)
    ledger = json.loads((tmp_path / "cache/train/shard_ledger.json").read_text())
    assert "tokenizer_sha256" not in json.dumps(ledger)
    assert ledger["layout"] == ("sharded" if sharded else "consolidated")
    config = TrainLmConfig(
        components={"web": f"{tmp_path}/cache"},
        tokenizer_path=inputs.tokenizer_path,
        output_path=str(tmp_path / "out"),
        model=LlamaSpec(max_seq_len=32, hidden_dim=32, intermediate_dim=64, num_layers=1, num_heads=1),
        num_train_steps=6,
        train_batch_size=4,
        compilation_cache_dir=f"{inputs.tokenizer_path}/../jax",
    )
    result = train_lm(unwrap_versioned_value(config))
    assert result["loss_end"] < result["loss_start"]
    assert read_metrics(str(tmp_path / "out/metrics.jsonl"))
    with pytest.raises(InputError, match="was tokenized with another tokenizer than"):
        check(f"{tmp_path}/cache", other_tokenizer)
