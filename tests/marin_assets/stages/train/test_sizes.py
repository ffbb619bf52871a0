"""The sizes of models, by arithmetic: equal to the arrays and the operations that Levanter has for the same shapes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from marin_assets.defaults import default_train
from marin_assets.stages.train.config import LlamaSpec, TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.sizes import preset_table, size_of
from marin_assets.stages.train.specs.model import FAMILIES, ModelSpec
from marin_assets.stages.train.specs.presets import LLAMA3_VOCABULARY, PRESETS, model_preset
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.hardware.resources import Resources, cpu, gpu, tpu

PAGE = Path(__file__).parents[4] / "docs/reference/models.md"
OF_EACH_FAMILY = {
    family: unwrap_versioned_value(
        ModelSpec(
            family=family,
            max_seq_len=64,
            hidden_dim=96,
            intermediate_dim=128,
            num_layers=3,
            num_heads=3,
            num_kv_heads=1,
            tie_word_embeddings=family in ("llama", "qwen2"),
            num_experts=4 if family in ("mixtral", "qwen3_moe") else None,
            num_experts_per_tok=2 if family in ("mixtral", "qwen3_moe") else None,
        )
    )
    for family in FAMILIES
}


@pytest.mark.long
def test_a_preset_has_the_parameters_and_operations_that_levanter_has() -> None:
    import equinox as eqx
    import haliax as hax
    import jax

    from marin_assets.stages.train.levanter_run.models import model_config

    by_name = {**OF_EACH_FAMILY, **PRESETS, "a small Llama": LlamaSpec()}
    for name, spec in by_name.items():
        model = unwrap_versioned_value(spec)
        config = model_config(model, "/nowhere")
        vocab = LLAMA3_VOCABULARY
        built = eqx.filter_eval_shape(config.build, hax.Axis("vocab", vocab), key=jax.random.PRNGKey(0))
        arrays = [leaf for leaf in jax.tree.leaves(built) if eqx.is_array(leaf) or hasattr(leaf, "shape")]
        size = size_of(model, vocab)
        assert size.parameters == sum(math.prod(array.shape) for array in arrays), name
        if getattr(model, "head_dim", None) is None:  # Levanter's count takes hidden_dim / num_heads in any case
            flops = config.flops_per_token(vocab, model.max_seq_len)
            if flops is not None:
                assert size.flops_per_token == pytest.approx(3 * flops, rel=1e-9), name


def test_a_mixture_of_experts_has_more_parameters_than_a_token_meets() -> None:
    size = size_of(unwrap_versioned_value(model_preset("mixtral_8x7b")), 32_000)
    assert (size.parameters, size.active_parameters) == (46_702_792_704, 12_879_925_248), "Mixtral 8x7B: 46.7 B, 12.9 B"


def test_an_unknown_preset_names_those_near_it() -> None:
    with pytest.raises(TrainError, match=r"The model preset is 'llama_7b', .* Did you mean 'llama_70b' or 'llama_8b'"):
        model_preset("llama_7b")


@pytest.mark.parametrize("resources", [tpu("v4-8"), gpu("H100", 8), tpu("v4-8", slices=16)])
def test_a_model_that_cannot_fit_is_refused_with_what_fits(resources: Resources) -> None:
    config = TrainLmConfig(components={}, tokenizer_path="")
    with pytest.raises(TrainError, match=r"trains 68\.5 billion parameters.*The smallest slices that fit are .*v5p-32"):
        default_train("big", {}, model_preset("llama_70b"), config, resources=resources)


@pytest.mark.parametrize("resources", [tpu("v5p-32"), gpu(count=8), cpu(), None])
def test_a_model_that_fits_or_a_machine_of_unknown_memory_is_accepted(resources: Resources | None) -> None:
    config = TrainLmConfig(components={}, tokenizer_path="")
    assert default_train("big", {}, model_preset("llama_70b"), config, resources=resources).name == "checkpoints/big"


def test_the_page_has_the_table_of_the_presets() -> None:
    assert preset_table() in PAGE.read_text(), "write preset_table() into the page"
