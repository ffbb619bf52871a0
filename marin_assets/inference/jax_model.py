"""A Levanter model from its Hugging Face export: load it, and compute logits. Without torch and without network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from marin_assets.inference.tokenizer import ModelTokenizer
from marin_resources.host.imports import collection_paused
from marin_resources.step_api.hosts import missing_accelerator
from marin_resources.types.errors import MarinError

LEVANTER_NAMES = {"qwen2": "qwen"}
"""Hugging Face's name of an architecture -> Levanter's, where they differ."""
SHORTEST_LENGTH = 32
ATTENTION_BLOCK = 1024
"""Tokens of a block of Levanter's attention: a longer row is a multiple of it."""
PACKED_LENGTH = 1024
"""Inputs of a packed row at most. Its mask has a byte for each pair of inputs: 8 MiB for 8 rows of 1024, where the
attention's own weights are larger; of 4096, where a kernel by blocks holds no weights, it would have 128 MiB."""
PACKABLE = ("gpt2", "llama", "mistral", "olmo2", "qwen", "qwen3", "qwen3_moe")
"""Architectures of Levanter that take positions and an explicit mask, and attend to all that the mask shows. Mixtral
passes over positions; Olmo 3 and Gemma have sliding windows, counted by place in the row."""
WRONG = ("gemma2", "gemma3", "gemma3_text")
"""Architectures whose logits Levanter computes otherwise than transformers: by 2.5 where a sliding window ends."""


class ModelError(MarinError, ValueError):
    """The model cannot be loaded, or cannot serve a request."""


def load_model(folder: str) -> tuple[Any, ModelTokenizer]:
    """Load the model and the tokenizer of a local Hugging Face export.

    Raises ModelError for a missing file, an unknown architecture or a step that requests a device which jax does not
    find, TokenizerFileError for a damaged tokenizer.
    """
    with collection_paused():
        import jax
        from levanter.models.lm_model import LmConfig  # jax and Levanter take 3 s to import
        from levanter.utils.jax_utils import local_cpu_mesh

    if (missing := missing_accelerator(jax.default_backend(), jax.devices()[0].device_kind)) is not None:
        raise ModelError(missing)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if not (Path(folder) / name).exists():
            raise ModelError(f"{folder!r} has no {name!r}, expected the folder of a Hugging Face export. Pass one.")
    kind = json.loads((Path(folder) / "config.json").read_text())["model_type"]
    if kind in WRONG:
        raise ModelError(
            f"{folder!r} has a model of type {kind!r}, whose logits Levanter computes wrongly beyond the sliding "
            "window. Evaluate a model of another architecture."
        )
    architectures = LmConfig.get_known_choices()
    if LEVANTER_NAMES.get(kind, kind) not in architectures:
        raise ModelError(
            f"{folder!r} has a model of type {kind!r}, expected one that Levanter has: {sorted(architectures)}."
        )
    config_class = architectures[LEVANTER_NAMES.get(kind, kind)]
    tokenizer = ModelTokenizer(folder)
    # the folder, since some architectures have no such fields and query the hub without it
    converter = config_class().hf_checkpoint_converter(folder).replaced(tokenizer=tokenizer.levanter)
    with local_cpu_mesh():
        config = _attending(converter.config_from_hf_checkpoint(folder))
        model = converter.load_pretrained(config_class, ref=folder, config=config)
    return model, tokenizer


def _attending(config: Any) -> Any:
    """The config with attention that is computed whole, where Levanter's kernel by blocks would refuse the window. A
    TPU has a kernel of its own."""
    import jax

    window = config.max_seq_len
    fits = window <= ATTENTION_BLOCK or window % ATTENTION_BLOCK == 0
    if fits or jax.default_backend() == "tpu" or not hasattr(config, "flash_attention_block_size"):
        return config
    return replace(config, flash_attention_block_size=window + 1)


@contextmanager
def mesh_for(model: Any) -> Iterator[None]:
    """The mesh of this host's devices, while the block runs, for a mixture of experts. Other models need none."""
    if not hasattr(model.config, "num_experts_per_tok"):
        yield
        return
    import haliax as hax
    import jax
    import numpy as np

    with hax.partitioning.set_mesh(jax.sharding.Mesh(np.array(jax.local_devices()), ("data",))):
        yield


def require_known(ids: Sequence[int], model: Any) -> None:
    """Raise ModelError for an id that is not in the model's vocabulary."""
    size = model.Vocab.size
    for token in ids:
        if not isinstance(token, int) or not 0 <= token < size:
            raise ModelError(f"A token is {token!r}, expected one of the model's, from 0 to {size - 1}.")


def padded_length(length: int, most: int) -> int:
    """The smallest of a few lengths, doubles of SHORTEST_LENGTH up to `most`, of at least `length` tokens: XLA compiles
    one program for each."""
    padded = SHORTEST_LENGTH
    while padded < length:
        padded *= 2
    return min(padded, most)


def longest_packed(model: Any) -> int:
    """Inputs of a packed row at most, 0 if the model or its device takes none.

    On a TPU a fused kernel, which takes no explicit mask, serves rows that are not packed.
    """
    import jax
    from levanter.models.lm_model import LmConfig

    is_packable = LmConfig.get_choice_name(type(model.config)) in PACKABLE
    slides = getattr(model.config, "use_sliding_window", False)
    return PACKED_LENGTH if is_packable and not slides and jax.default_backend() != "tpu" else 0


def logits_at(model: Any, tokens: Any, places: Any) -> Any:
    """Return the logits at `places` only, (batch, scored, vocabulary) in float32.

    Logits are two thirds of a small model's work. Padding is on the right, where the causal mask hides it.
    """
    import jax.numpy as jnp

    return logits_of(model, jnp.take_along_axis(hidden_of(model, tokens), places[..., None], axis=1))


def hidden_of(model: Any, tokens: Any, packed: tuple[Any, Any, Any] | None = None) -> Any:
    """Return the last hidden states of ids (batch, position): (batch, position, embed).

    `packed` has, for each token of packed rows, its position in its text, the part of the row that it is in, and the
    part that it continues, all (batch, position): a token attends to those before it of these two parts.
    """
    import haliax as hax
    from levanter.layers.attention import AttentionMask

    axes = hax.Axis("batch", tokens.shape[0]), model.Pos.resize(tokens.shape[1])
    mask, options = AttentionMask.causal(), {}
    if packed is not None:
        positions, parts, roots = packed
        mask = AttentionMask.explicit(hax.named(_sees(parts, roots), (*axes, axes[1].alias("key_position"))))
        options = {"pos_ids": hax.named(positions, axes)}
    activations = model.activations(hax.named(tokens, axes), attn_mask=mask, **options)
    # mixtures of experts return an auxiliary loss too
    hidden = activations[0] if isinstance(activations, tuple) else activations
    return hidden.rearrange((*axes, model.Embed)).array


def _sees(parts: Any, roots: Any) -> Any:
    """Whether a token attends to another, (batch, position, position): one mask, and not a causal one beside it, since
    fused kernels refuse such a mask, and would take the causal one alone."""
    import jax.numpy as jnp

    of_key = parts[:, None, :]
    seen = (of_key == parts[:, :, None]) | (of_key == roots[:, :, None])
    return seen & jnp.tri(parts.shape[1], dtype=bool)


def logits_of(model: Any, hidden: Any) -> Any:
    """Return the logits after hidden states (batch, scored, embed): (batch, scored, vocabulary) in float32."""
    import haliax as hax
    import jax.numpy as jnp

    axes = (hax.Axis("batch", hidden.shape[0]), hax.Axis("scored", hidden.shape[1]))
    logits = hax.dot(hax.named(hidden, (*axes, model.Embed)), model.get_lm_head(), axis=model.Embed)
    return logits.rearrange((*axes, model.Vocab)).array.astype(jnp.float32)


def batch_sharding(devices: Sequence[Any]) -> Any:
    """The rows of a batch, spread over the devices."""
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    return NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec("data"))


def replicate(model: Any, devices: Sequence[Any]) -> Any:
    """Copy the model's arrays to every device."""
    import equinox as eqx
    import jax

    arrays, rest = eqx.partition(model, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, replicated_sharding(devices)), rest)


def replicated_sharding(devices: Sequence[Any]) -> Any:
    """All of an array, on each of the devices."""
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    return NamedSharding(Mesh(np.array(devices), ("data",)), PartitionSpec())


def bound(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """`function` of the model and arrays, compiled, as a function of the arrays alone.

    The model's arrays are flattened once, and not for each call, which takes 10 ms of a small model's 30.
    """
    import equinox as eqx
    import jax

    arrays, rest = eqx.partition(model, eqx.is_array)
    leaves, tree = jax.tree.flatten(arrays)

    def compute(leaves: list[Any], *inputs: Any) -> Any:
        return function(eqx.combine(jax.tree.unflatten(tree, leaves), rest), *inputs)

    return partial(jax.jit(compute), leaves)


def rebound(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """A function that `bound` returned, with the arrays of another model of the same shape. Nothing is compiled."""
    import equinox as eqx
    import jax

    assert isinstance(function, partial)
    return partial(function.func, jax.tree.leaves(eqx.filter(model, eqx.is_array)))
