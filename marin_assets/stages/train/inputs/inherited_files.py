"""The settings of generation in an export, some of them inherited from the folder that the training began with."""

from __future__ import annotations

from typing import Any

from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.formats import chat_format
from marin_assets.stages.train.inputs.mixture_inputs import caches_in
from marin_assets.stages.train.specs.start import FromHuggingFace, Start
from marin_resources.storage.files import exists, read_bytes, read_json
from marin_resources.storage.paths import join


def generation_config(config: TrainLmConfig, *, bos: int | None, eos: int | None) -> dict[str, Any]:
    """Return the generation_config.json of the trained model: that of its start, with the stop tokens of this training.

    `bos` and `eos` are those of the tokenizer. A chat model that is trained on documents keeps the tokens at which it
    stops, and its publisher's settings. Raises TrainError for a file that cannot be read.
    """
    inherited = _read(config.start, "generation_config.json")
    before = inherited.get("eos_token_id")
    stops = set(before if isinstance(before, list) else () if before is None else (before,))
    if eos is not None:
        stops.add(eos)
    if (chats := chat_format(caches_in(config))) is not None:
        stops.add(chats.stop_token_id)
    return {
        **inherited,
        **({"eos_token_id": sorted(stops)} if stops else {}),
        **({} if bos is None else {"bos_token_id": bos}),
    }


def chat_template_of_start(start: Start | None, tokenizer_path: str) -> str | None:
    """Return the chat template of the start, if the tokenizer of the training has none."""
    if not isinstance(start, FromHuggingFace) or _chat_template(tokenizer_path) is not None:
        return None
    return _chat_template(start.path)


def _chat_template(folder: str) -> str | None:
    config = join(folder, "tokenizer_config.json")
    template = read_json(config).get("chat_template") if exists(config) else None
    if isinstance(template, list):  # several by name
        template = next(
            (named_template["template"] for named_template in template if named_template["name"] == "default"), None
        )
    file = join(folder, "chat_template.jinja")
    if template is None and exists(file):
        return read_bytes(file).decode()
    return template


def _read(start: Start | None, name: str) -> dict[str, Any]:
    """A file of JSON in the folder that the training began with; empty if none exists."""
    if not isinstance(start, FromHuggingFace) or not exists(file := join(start.path, name)):
        return {}
    try:
        content = read_json(file)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise TrainError(f"{file!r} is damaged, expected a JSON object. Download it again, or remove it.")
    return content
