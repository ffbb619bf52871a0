"""Tokenizer files with the settings of the program that wrote them, as many from the hub have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

TRUNCATION = {"direction": "Right", "max_length": 32, "strategy": "LongestFirst", "stride": 0}
PADDING = {
    "strategy": {"Fixed": 48},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 2,
    "pad_type_id": 0,
    "pad_token": "<|pad|>",
}


def with_settings(tokenizer: Path | str, folder: Path | str, *, dropout: float | None = 0.5) -> str:
    """Copy a tokenizer's folder, with truncation, padding and BPE's dropout in its tokenizer.json. Returns the copy."""
    shutil.copytree(tokenizer, folder)
    change_json(Path(folder, "tokenizer.json"), lambda found: found["model"].update(dropout=dropout))
    change_json(Path(folder, "tokenizer.json"), lambda found: found.update(truncation=TRUNCATION, padding=PADDING))
    return str(folder)


def with_token(tokenizer: Path | str, folder: Path | str, content: str, token: int, *, special: bool = False) -> str:
    """Copy a tokenizer's folder, with one more token. Returns the copy."""
    shutil.copytree(tokenizer, folder)
    added = {"id": token, "content": content, "special": special, "single_word": False, "lstrip": False}
    added |= {"rstrip": False, "normalized": False}
    change_json(Path(folder, "tokenizer.json"), lambda found: found["added_tokens"].append(added))
    change_json(Path(folder, "tokenizer.json"), lambda found: found["model"]["vocab"].update({content: token}))
    return str(folder)


def change_json(path: Path, change: Any) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
