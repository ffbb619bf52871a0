"""The families of models: what is imported computes what transformers computes, and is exported as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hugging_face_logits import LAST, read_logits
from hugging_face_models import FAMILIES, TOKENS, config_of, write_folder

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import hf_shape
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec, check_model
from marin_assets.step.values import unwrap_versioned_value

pytestmark = pytest.mark.filterwarnings("default")  # warnings of Levanter and its dependencies

LOGITS_APART = 1e-4


def model_of(folder: Path, max_seq_len: int | None = None) -> HuggingFaceModel:
    return HuggingFaceModel(path=str(folder), max_seq_len=max_seq_len)


def folder_with(folder: Path, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**config_of("llama"), **config}))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_an_imported_model_computes_what_transformers_does_and_is_exported_as_it_was(
    name: str, inputs: Any, tmp_path: Path
) -> None:
    import numpy as np
    from levanter.tokenizers import load_tokenizer
    from levanter.utils.jax_utils import local_cpu_mesh
    from safetensors.numpy import load_file

    from marin_assets.inference.jax_model import load_model, mesh_for
    from marin_assets.stages.train.inputs.token_inputs import stage_tokenizer
    from marin_assets.stages.train.levanter_run.initial_weights import load_hf_weights
    from marin_assets.stages.train.levanter_run.models import model_config

    theirs = read_logits()[name]
    folder = write_folder(tmp_path / "theirs", name, theirs["shapes"])
    tokenizer = stage_tokenizer(inputs.tokenizer_path, f"{tmp_path}/tokenizer", config_of(name)["model_type"])
    config = model_config(model_of(folder), tokenizer)
    (tmp_path / "temporary").mkdir()
    with local_cpu_mesh():
        model = load_hf_weights(str(folder), config, np.float32, None, f"{tmp_path}/temporary")
        assert np.abs(last_logits(model) - theirs["logits"]).max() < LOGITS_APART
        converter = config.hf_checkpoint_converter().replaced(tokenizer=load_tokenizer(tokenizer))
        converter.save_pretrained(model, str(tmp_path / "export"))
    ours, original = (load_file(tmp_path / at / "model.safetensors") for at in ("export", "theirs"))
    assert sorted(ours) == sorted(original)
    assert all(ours[weight].tobytes() == original[weight].tobytes() for weight in original)
    exported = json.loads((tmp_path / "export/config.json").read_text())
    assert exported["architectures"] == config_of(name)["architectures"]
    again, _ = load_model(str(tmp_path / "export"))
    with mesh_for(again):
        assert np.abs(last_logits(again) - theirs["logits"]).max() < LOGITS_APART


def last_logits(model: Any) -> Any:
    import numpy as np

    from marin_assets.inference.jax_model import logits_at

    tokens = np.asarray(TOKENS, np.int32)
    positions = np.tile(np.arange(tokens.shape[1] - LAST, tokens.shape[1]), (len(tokens), 1))
    return np.asarray(logits_at(model, tokens, positions))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"model_type": "gemma2"}, "differs from transformers' beyond the sliding window"),
        ({"model_type": "gemma3_text"}, "one rotary base in all layers"),
        ({"model_type": "phi3"}, "a model of type 'phi3', expected one of llama, mistral, qwen2"),
        ({"model_type": "mistral", "sliding_window": 16}, "sliding window of 16 tokens.*Set max_seq_len to 16 or less"),
    ],
)
def test_a_model_that_would_come_out_wrong_is_refused(tmp_path: Path, config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainError, match=sentence):
        hf_shape(model_of(folder_with(tmp_path, **config)))


def test_a_sliding_window_that_no_sequence_reaches_is_no_harm(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, model_type="mistral", sliding_window=16)
    assert hf_shape(model_of(folder, max_seq_len=16)).max_seq_len == 16
    unused = folder_with(tmp_path, model_type="qwen2", sliding_window=16, use_sliding_window=False)
    assert hf_shape(model_of(unused)).max_seq_len == 32


def test_sequences_longer_than_the_model_takes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match=r"max_seq_len is 64, and the model at .* takes at most 32 tokens"):
        hf_shape(model_of(folder_with(tmp_path), max_seq_len=64))


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"attention_bias": True}, "has attention_bias=True, and Levanter's llama would train it with False"),
        ({"head_dim": 48}, "has head_dim=48"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "Levanter cannot take the model"),
    ],
)
def test_what_levanter_would_pass_over_is_refused(tmp_path: Path, config: dict[str, Any], sentence: str) -> None:
    from marin_assets.stages.train.levanter_run.models import config_of_folder

    with pytest.raises(TrainError, match=sentence):
        config_of_folder(str(folder_with(tmp_path, **config)))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"family": "qwen"}, "family is 'qwen', .* Did you mean 'qwen3'"),
        ({"family": "mixtral"}, "needs num_experts and num_experts_per_tok"),
        ({"num_experts": 4}, "'llama' has num_experts=4 and num_experts_per_tok=None, expected None"),
        ({"head_dim": 64}, "head_dim=64, which its export would lose"),
        ({"rope": "yarn"}, "rope is 'yarn', expected one of 'default', 'llama3'"),
    ],
)
def test_a_spec_with_what_its_family_does_not_have_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainError, match=sentence):
        check_model(unwrap_versioned_value(ModelSpec(**fields)))


@pytest.mark.long
def test_a_spec_that_its_export_would_change_is_refused() -> None:
    from marin_assets.stages.train.levanter_run.models import model_config

    experts = {"num_experts": 4, "num_experts_per_tok": 2}
    with pytest.raises(TrainError, match=r"'mixtral' with rope_scaling=.* would be exported with None"):
        model_config(unwrap_versioned_value(ModelSpec(family="mixtral", rope="llama3", **experts)), "/nowhere")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_mixture_of_experts_is_trained_from_random_weights_and_evaluated(inputs: Any, tmp_path: Path) -> None:
    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.sample_text import sample_text
    from marin_assets.stages.train.config import TrainLmConfig
    from marin_assets.stages.train.train_lm import train_lm

    model = ModelSpec(
        family="qwen3_moe",
        max_seq_len=32,
        hidden_dim=32,
        intermediate_dim=32,
        num_layers=2,
        num_heads=1,
        num_kv_heads=1,
        num_experts=4,
        num_experts_per_tok=2,
        vocab_size=520,
        gradient_checkpointing=False,
    )
    config = TrainLmConfig(
        components=inputs.components,
        tokenizer_path=inputs.tokenizer_path,
        output_path=str(tmp_path),
        model=model,
        num_train_steps=12,
        train_batch_size=4,
        max_eval_batches=2,
        compilation_cache_dir=f"{inputs.tokenizer_path}/../jax",
    )
    result = train_lm(unwrap_versioned_value(config))
    assert result["loss_end"] < result["loss_start"]
    exported = json.loads((tmp_path / "hf/config.json").read_text())
    assert (exported["model_type"], exported["num_experts"], exported["vocab_size"]) == ("qwen3_moe", 4, 520)
    assert list(sample_text(*load_model(f"{tmp_path}/hf"), "The ", max_tokens=2)) is not None


def test_a_folder_of_weights_serves_as_the_tokenizer(inputs: Any, tmp_path: Path) -> None:
    from marin_assets.stages.train.inputs.token_inputs import stage_tokenizer

    shutil.copytree(inputs.tokenizer_path, tmp_path / "hf")
    (tmp_path / "hf/model.safetensors").write_bytes(b"large")
    (tmp_path / "hf/config.json").write_text('{"auto_map": {"AutoConfig": "code.Config"}}')
    staged = Path(stage_tokenizer(str(tmp_path / "hf"), str(tmp_path / "staged"), "qwen3"))
    assert not (staged / "model.safetensors").exists()
    assert json.loads((staged / "config.json").read_text()) == {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
    }
