"""The families of encoders: from a config.json to the architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marin_assets.inference.encoder import bert, deberta, gte, modernbert
from marin_assets.inference.encoder.architecture import Architecture
from marin_assets.inference.encoder.errors import EncoderError
from marin_assets.inference.encoder.model_config import ELSE, ModelConfig

FAMILIES: dict[str, Callable[[ModelConfig], Architecture]] = {
    **dict.fromkeys(bert.FAMILIES, bert.bert_of),
    deberta.KIND: deberta.deberta_of,
    modernbert.KIND: modernbert.modernbert_of,
    gte.KIND: gte.gte_of,
}
"""Hugging Face's model_type -> the function that reads its config."""


def architecture_of(config: Mapping[str, Any], where: str) -> Architecture:
    """Read a config.json. Raises EncoderError for a model of another family; `where` is named in the sentence."""
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise EncoderError(
            f"{where!r} has a model of type {kind!r}, expected an encoder: one of {sorted(FAMILIES)}. {ELSE}"
        )
    return FAMILIES[kind](ModelConfig(values=config, where=where, kind=kind))
