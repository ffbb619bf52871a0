"""An encoder with its tokenizer, from a local folder of Hugging Face: texts become tokens, and tokens vectors."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.inference.encoder.architecture import Architecture, Arrays
from marin_assets.inference.encoder.batches import ROWS, batches_of
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.families import architecture_of
from marin_assets.inference.encoder.parameters import gather
from marin_assets.inference.jax_model import batch_sharding, replicated_sharding
from marin_resources.step_api.hosts import missing_accelerator

if TYPE_CHECKING:
    import numpy as np

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LOG_EVERY_S = 10.0
LONGEST_TOKEN = 32
"""Characters of a text that are read for each of `max_tokens`, so that a text of any length is cheap."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Encoder:
    architecture: Architecture
    arrays: Arrays
    tokenizer: Any
    max_tokens: int
    """Tokens of a text that are read, with those that mark its begin and its end."""
    devices: tuple[Any, ...]
    """Devices of this host that share a batch, each with all weights."""

    @property
    def most_characters(self) -> int:
        """Characters of a text that are read."""
        return self.max_tokens * LONGEST_TOKEN

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts. A special token that is written in a text is text."""
        # half of a surrogate pair is no text for the library
        cut = [text[: self.most_characters].encode("utf-8", "replace").decode() for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(cut)]

    def outputs(
        self, compute: Any, texts: Sequence[str], size: int, *, done: int = 0, of: int | None = None
    ) -> np.ndarray:
        """Return the rows of `compute(tokens, mask)` over batches of texts: (texts, size) in float32.

        A line is logged every few seconds: `done` texts were computed before, `of` all that there will be.
        """
        import numpy as np

        outputs = np.empty((len(texts), size), np.float32)
        began_s = logged_s = time.monotonic()
        computed, total = 0, len(texts) if of is None else of
        for batch in batches_of(self.tokens(texts), self.max_tokens):
            rows = compute(self.on_devices(batch.tokens), self.on_devices(batch.mask))
            outputs[batch.places] = np.asarray(rows)[: len(batch.places)]
            computed += len(batch.places)
            if (now_s := time.monotonic()) - logged_s >= LOG_EVERY_S:
                rate = computed / (now_s - began_s)
                log.info("%d of %d texts, %.0f/s, %.0f s left",
                         done + computed, total, rate, (total - done - computed) / rate)  # fmt: skip
                logged_s = now_s
        return outputs

    def on_devices(self, rows: np.ndarray) -> Any:
        """Spread the rows of a batch, a multiple of ROWS, over the devices."""
        import jax

        return jax.device_put(rows, batch_sharding(self.devices)) if len(self.devices) > 1 else rows

    def on_each_device(self, arrays: Any) -> Any:
        """Copy arrays to every device."""
        import jax

        return jax.device_put(arrays, _whole(self.devices))


def load_encoder(folder: str, max_tokens: int | None) -> tuple[Encoder, dict[str, Any], dict[str, Any]]:
    """Load the encoder of a local folder. Return it with its config.json and all tensors of its file.

    `max_tokens` is the most that the encoder reads, at most 512, if None. On a CPU, XLA has as many threads as
    OMP_NUM_THREADS states, which Ray sets to the CPUs of a task. Raises EncoderError, TokenizerFileError.
    """
    if "OMP_NUM_THREADS" in os.environ:
        os.environ.setdefault("NPROC", os.environ["OMP_NUM_THREADS"])
    import jax
    from safetensors import SafetensorError

    if (missing := missing_accelerator(jax.default_backend(), jax.devices()[0].device_kind)) is not None:
        raise EncoderError(missing)
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (Path(folder) / name).exists():
            raise EncoderError(
                f"{folder!r} has no {name!r}, expected the folder of an encoder: {CONFIG}, {WEIGHTS} and {TOKENIZER}. "
                "Pass one."
            )
    try:
        config = json.loads((Path(folder) / CONFIG).read_text())
        architecture = architecture_of(config, folder)
        tensors = _tensors(f"{folder}/{WEIGHTS}")
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
        raise EncoderError(f"The encoder in {folder!r} cannot be read ({error}). Download or save it again.") from error
    most = max_tokens if max_tokens is not None else min(architecture.most_tokens, 512)
    if not 3 <= most <= architecture.most_tokens:
        raise EncoderError(
            f"max_tokens is {most}, expected 3 to {architecture.most_tokens}, which the encoder in {folder!r} can read."
        )
    arrays = gather(tensors, architecture, folder)
    tokenizer = read_tokenizer(folder)
    tokenizer.enable_truncation(most)
    if (size := tokenizer.get_vocab_size()) > (rows := arrays["word"].shape[0]):
        raise EncoderError(
            f"The tokenizer in {folder!r} has {size} tokens, and the encoder {rows}. Pass the tokenizer of it."
        )
    local = jax.local_devices()
    devices = tuple(local[: next(count for count in range(min(len(local), ROWS), 0, -1) if ROWS % count == 0)])
    arrays = jax.device_put(arrays, _whole(devices))
    return Encoder(architecture, arrays, tokenizer, most, devices), config, tensors


def _whole(devices: Sequence[Any]) -> Any:
    """All of an array on each device. On one it is not bound to it, as a computation of one device is the same."""
    return replicated_sharding(devices) if len(devices) > 1 else None


def _tensors(file: str) -> dict[str, Any]:
    """Read the numbers of a safetensors file, also in bfloat16, which the library's own reader for numpy refuses."""
    import ml_dtypes  # of jax
    import numpy as np
    from safetensors import deserialize

    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
    return {
        name: np.frombuffer(tensor["data"], kinds[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in deserialize(Path(file).read_bytes())
        if tensor["dtype"] in kinds
    }


def mean_of(arrays: Arrays, tokens: Any, mask: Any, architecture: Architecture) -> Any:
    """Return the mean of the hidden states of each row's tokens: (batch, width)."""
    hidden = architecture.hidden_states(arrays, tokens, mask)
    weights = mask[..., None].astype(hidden.dtype)
    return (hidden * weights).sum(axis=1) / weights.sum(axis=1).clip(1)
