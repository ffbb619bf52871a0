from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marin_assets.documents import Document, read_documents, write_documents
from marin_assets.documents.position import TRAIN, VALIDATION, SplitError, check_fraction, split_of
from marin_assets.stages.tokenize.train_tokenizer import (
    HARD_TEXTS,
    TokenizerError,
    TrainTokenizerConfig,
    train_tokenizer,
)
from marin_assets.step.values import unwrap_versioned_value

PAGES = [Document(id=f"page-{i}", text="") for i in range(10_000)]


def make(documents: Path, output: Path, **changes: Any) -> dict[str, Any]:
    config = TrainTokenizerConfig(documents_path=str(documents), output_path=str(output), **changes)
    return train_tokenizer(unwrap_versioned_value(config))


@pytest.fixture(scope="module")
def made(documents_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("tokenizer")
    return output, make(documents_path, output, vocab_size=1000)


def test_the_split_takes_about_the_given_fraction() -> None:
    assert 0.04 < sum(split_of(page, 0.05) == VALIDATION for page in PAGES) / len(PAGES) < 0.06
    assert all(split_of(page, 0.0) == TRAIN for page in PAGES)


def test_chunks_of_one_page_are_on_one_side() -> None:
    chunks = [Document(id=f"abc#{i}", text="", metadata={"page": "abc"}) for i in range(100)]
    assert len({split_of(chunk, 0.5) for chunk in chunks}) == 1


def test_a_larger_fraction_only_adds_pages_to_the_validation_side() -> None:
    assert not [p for p in PAGES if split_of(p, 0.05) == VALIDATION and split_of(p, 0.1) == TRAIN]


@pytest.mark.parametrize("fraction", [-0.1, 1, 1.5, True, "0.1", None])
def test_an_invalid_fraction_is_refused(fraction: Any) -> None:
    with pytest.raises(SplitError, match="expected a number from 0"):
        check_fraction(fraction)


def test_the_vocabulary_has_the_given_size_and_every_text_round_trips(made: tuple[Path, dict[str, Any]]) -> None:
    _, result = made
    assert result["vocab_size"] == 1000
    assert result["roundtrip_failures"] == 0
    assert result["roundtrip_documents"] > result["documents"] > 0
    assert 1.5 < result["bytes_per_token"] < 6


def test_hard_texts_round_trip_with_the_folder_on_disk(made: tuple[Path, dict[str, Any]]) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(made[0] / "tokenizer.json"))
    for text in HARD_TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_tokenizer_that_changes_texts_is_counted_as_failing(documents_path: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    from marin_assets.stages.tokenize.train_tokenizer import _check_roundtrip

    lossy = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    lossy.normalizer, lossy.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    shards = sorted(map(str, documents_path.iterdir()))
    result = _check_roundtrip(lossy, shards, limit=20)
    assert 15 <= result["roundtrip_documents"] <= 20
    assert result["roundtrip_failures"] >= result["roundtrip_documents"]


def test_the_folder_loads_in_transformers_with_its_special_tokens(made: tuple[Path, dict[str, Any]]) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(made[0]), local_files_only=True)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (0, 1, 2)
    assert tokenizer("text").input_ids[0] == tokenizer.bos_token_id
    assert len(tokenizer) == 1000


def test_only_the_train_side_is_trained_on(documents_path: Path, tmp_path: Path) -> None:
    documents = [d for shard in sorted(documents_path.iterdir()) for d in read_documents(str(shard))]
    train_side = [document for document in documents if split_of(document, 0.3) == TRAIN]
    write_documents(str(tmp_path / "train" / "a.jsonl.zst"), train_side)
    all_of_it = make(documents_path, tmp_path / "a", vocab_size=500, validation_fraction=0.3)
    make(tmp_path / "train", tmp_path / "b", vocab_size=500, validation_fraction=0.0)
    assert all_of_it["documents"] == len(train_side) < len(documents)
    assert all_of_it["bytes"] == sum(len(document.text.encode()) for document in train_side)
    # In other shards, in another order: the counts decide, and ties are broken by the tokens.
    assert (tmp_path / "a" / "tokenizer.json").read_bytes() == (tmp_path / "b" / "tokenizer.json").read_bytes()


def test_two_runs_give_equal_bytes_for_any_threads_and_hash_seed(documents_path: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from marin_assets.step.values import unwrap_versioned_value as u\n"
        "from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig as C, train_tokenizer\n"
        "train_tokenizer(u(C(documents_path=sys.argv[1], output_path=sys.argv[2])))\n"
    )
    for name, threads in (("a", "1"), ("b/elsewhere", "4")):
        env = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        subprocess.run([sys.executable, "-c", program, str(documents_path), str(tmp_path / name)], env=env, check=True)
    for file in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b/elsewhere" / file).read_bytes()


def test_too_little_text_for_the_vocabulary_is_an_error(tmp_path: Path) -> None:
    write_documents(str(tmp_path / "d.jsonl.zst"), [Document(id="a", text="a short text")])
    with pytest.raises(TokenizerError, match=r"expected vocab_size=4096\. Lower vocab_size, or pass more text"):
        make(tmp_path, tmp_path / "out", validation_fraction=0.0)


def test_a_vocabulary_smaller_than_the_bytes_is_an_error(documents_path: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="at least 259"):
        make(documents_path, tmp_path, vocab_size=100)
