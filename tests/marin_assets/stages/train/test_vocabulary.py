"""Every token has a row in the model's embedding, or the training is refused: XLA would clamp its id."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizer_settings import with_settings, with_token

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.specs.model import ModelSpec, model_from_hf
from marin_assets.stages.train.specs.start import FromHuggingFace
from marin_assets.stages.train.train_lm import LlamaSpec, TrainLmConfig, train_lm
from marin_assets.stages.train.vocabulary import require_rows
from marin_assets.step.values import unwrap_versioned_value

LAST = 5000
SHAPE: dict[str, int] = {"max_seq_len": 32, "hidden_dim": 32, "intermediate_dim": 64, "num_layers": 1, "num_heads": 1}


@pytest.fixture(scope="module")
def with_a_gap(inputs: Any, tmp_path_factory: pytest.TempPathFactory) -> TrainLmConfig:
    """A training on text with "MORE", whose id is 5000, while the tokenizer has 513 tokens."""
    folder = tmp_path_factory.mktemp("gap")
    tokenizer = with_token(inputs.tokenizer_path, folder / "tokenizer", "MORE", LAST)
    texts = [Document(id=str(i), text=f"{i} and MORE of it. " * 20) for i in range(40)]
    write_documents(f"{folder}/documents/a.jsonl.zst", texts)
    cache = TokenizeConfig(
        documents_path=f"{folder}/documents",
        tokenizer_path=tokenizer,
        output_path=f"{folder}/cache",
        validation_fraction=0.2,
    )
    assert tokenize(cache)["token_mismatches"] == 0
    config = TrainLmConfig(
        components={"more": f"{folder}/cache"},
        tokenizer_path=tokenizer,
        output_path=f"{folder}/out",
        model=LlamaSpec(**SHAPE),
        num_train_steps=2,
        train_batch_size=2,
        compilation_cache_dir=f"{inputs.tokenizer_path}/../jax",
    )
    found: TrainLmConfig = unwrap_versioned_value(config)
    return found


def test_a_token_above_the_vocabulary_is_refused_by_its_name(with_a_gap: TrainLmConfig) -> None:
    expected = r"has the token 'MORE' with the id 5000, and only 513 tokens, .* Pass a ModelSpec with vocab_size=5001"
    with pytest.raises(TrainError, match=expected):
        train_lm(with_a_gap)
    small = unwrap_versioned_value(ModelSpec(**SHAPE, num_kv_heads=1, vocab_size=LAST))
    with pytest.raises(TrainError, match=r"has 5000 rows in its embedding, and .* the token 'MORE' with the id 5000"):
        train_lm(replace(with_a_gap, model=small))
    assert not Path(with_a_gap.output_path, "checkpoints").exists()


@pytest.mark.parametrize("rows", [512, 513, 5000, 5001])
def test_the_rows_of_a_downloaded_model_are_those_of_its_config(
    with_a_gap: TrainLmConfig, tmp_path: Path, rows: int
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": rows}))
    start = FromHuggingFace(path=str(tmp_path))
    for model, of in ((model_from_hf(str(tmp_path)), None), (LlamaSpec(**SHAPE), start), (None, start)):
        if rows > LAST:
            require_rows(unwrap_versioned_value(model), of, with_a_gap.tokenizer_path)
            continue
        with pytest.raises(
            TrainError, match=rf"The model has {rows} rows .* 'MORE' with the id 5000, expected ids below"
        ):
            require_rows(unwrap_versioned_value(model), of, with_a_gap.tokenizer_path)


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies
def test_with_enough_rows_it_trains_and_the_exported_tokenizer_cuts_and_pads_nothing(
    with_a_gap: TrainLmConfig, tmp_path: Path
) -> None:
    tokenizer = with_settings(with_a_gap.tokenizer_path, tmp_path / "cuts", dropout=0.1)
    cache = TokenizeConfig(
        documents_path=f"{with_a_gap.tokenizer_path}/../documents",
        tokenizer_path=tokenizer,
        output_path=f"{tmp_path}/cache",
        validation_fraction=0.2,
    )
    assert tokenize(cache)["tokens"] > 40 * 100
    model = unwrap_versioned_value(ModelSpec(**SHAPE, num_kv_heads=1, vocab_size=LAST + 1))
    changes: dict[str, Any] = {"components": {"more": f"{tmp_path}/cache"}, "output_path": str(tmp_path / "out")}
    result = train_lm(replace(with_a_gap, model=model, tokenizer_path=tokenizer, **changes))
    assert result["loss_end"] < result["loss_start"]
    exported = json.loads((tmp_path / "out/hf/tokenizer.json").read_text())
    assert (exported["truncation"], exported["padding"], exported["model"]["dropout"]) == (None, None, None)
    original = json.loads(Path(tokenizer, "tokenizer.json").read_text())
    assert exported["model"]["vocab"] == original["model"]["vocab"]
    assert json.loads((tmp_path / "out/hf/config.json").read_text())["vocab_size"] == LAST + 1
