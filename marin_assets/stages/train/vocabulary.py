"""The rows of a model's embedding, of which every token of the tokenizer needs one. Loads neither jax nor transformers.

XLA clamps an id that is too large: without a check, such a token would be trained as the last row.
"""

from __future__ import annotations

from typing import Any

from marin_assets.documents.caches.tokens import read_tokenizer
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.inputs.hf_folder import read_hf_config
from marin_assets.stages.train.specs.model import HuggingFaceModel, ModelSpec
from marin_assets.stages.train.specs.start import FromHuggingFace, Start


def rows_of(model: Any) -> int | None:
    """Rows of the embedding that the model sets; None: as many as the tokenizer has tokens."""
    if isinstance(model, HuggingFaceModel):
        return int(read_hf_config(model.path)["vocab_size"])
    return model.vocab_size if isinstance(model, ModelSpec) else None


def require_rows(model: Any, start: Start | None, tokenizer_path: str) -> None:
    """Raise TrainError if the tokenizer has a token without a row in the embedding of the model, or of its start."""
    vocabulary = read_tokenizer(tokenizer_path).get_vocab(with_added_tokens=True)
    token, last = max(vocabulary.items(), key=lambda entry: entry[1])
    rows = rows_of(model)
    if rows is None and isinstance(start, FromHuggingFace):
        rows = int(read_hf_config(start.path)["vocab_size"])
    if rows is None and last >= len(vocabulary):
        raise TrainError(
            f"The tokenizer at {tokenizer_path!r} has the token {token!r} with the id {last}, and only "
            f"{len(vocabulary)} tokens, for each of which the model would have a row in its embedding. Pass a "
            f"ModelSpec with vocab_size={last + 1}, or a tokenizer whose ids have no gaps."
        )
    if rows is not None and last >= rows:
        raise TrainError(
            f"The model has {rows} rows in its embedding, and the tokenizer at {tokenizer_path!r} the token {token!r} "
            f"with the id {last}, expected ids below {rows}. Tokenize the documents with the model's tokenizer and "
            "pass that as tokenizer_path, or give a new model a larger vocab_size."
        )
