"""The Hugging Face folder of a trained model: Levanter's, in which generation_config.json alone is about generation.

Levanter's config.json has transformers' defaults of generation (`max_length` 20), and fields of encoder-decoders:
`begin_suppress_tokens`, for which transformers would never begin an answer with BOS, EOS or PAD.
"""

from __future__ import annotations

import copy
from typing import Any

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.inputs.inherited_files import generation_config

OF_GENERATION = (
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "decoder_start_token_id",
)
"""Fields of a config.json that transformers takes as settings of generation."""


class Export:
    """Writes the folders of one training."""

    def __init__(self, config: TrainLmConfig, converter: Any, tokenizer: Any) -> None:
        """`converter` and `tokenizer` are Levanter's. Raises TrainError for a damaged file of the start."""
        self._generation = generation_config(config, bos=tokenizer.bos_token_id, eos=tokenizer.eos_token_id)
        self._converter = copy.copy(converter)
        build = self._converter._build_hf_config_dict

        def build_plain(model: Any) -> dict[str, Any]:
            return {name: value for name, value in build(model).items() if name not in OF_GENERATION}

        object.__setattr__(self._converter, "_build_hf_config_dict", build_plain)  # the class is frozen

    def save(self, model: Any, path: str) -> None:
        self._converter.save_pretrained(model, path, generation_config=self._generation)
