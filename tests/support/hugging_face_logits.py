"""What transformers computes for the tiny models of `hugging_face_models`, kept in hugging_face_logits.json.

Run as a script, it computes that file again. It needs torch and transformers 4.57 then, an environment of its own.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hugging_face_models import FAMILIES, TOKENS, config_of, write_folder

FILE = Path(__file__).with_suffix(".json")
LAST = 8
"""Positions that are kept, at the end: each depends on all before it, or on the window of 8."""


def read_logits() -> dict[str, Any]:
    """Name of a model -> {"shapes": name of a weight -> shape, "logits": of the last positions}."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def make_logits() -> None:
    import torch
    import transformers

    found = {}
    for name, (architecture, _) in FAMILIES.items():
        kind = getattr(transformers, architecture)
        empty = kind(kind.config_class(**config_of(name)))
        shapes = {n: list(w.shape) for n, w in empty.state_dict().items()}
        if config_of(name)["tie_word_embeddings"]:
            del shapes["lm_head.weight"]
        with tempfile.TemporaryDirectory() as folder:
            model = kind.from_pretrained(write_folder(Path(folder, name), name, shapes), dtype=torch.float32)
        with torch.no_grad():
            logits = model.eval()(torch.tensor(TOKENS)).logits
        kept = [[[round(float(x), 6) for x in at] for at in row[-LAST:]] for row in logits]
        found[name] = {"shapes": shapes, "logits": kept}
    text = json.dumps(found, separators=(",", ":")).replace('},"', '},\n"')
    FILE.write_text(text + "\n")


if __name__ == "__main__":
    make_logits()
