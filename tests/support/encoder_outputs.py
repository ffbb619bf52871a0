"""What transformers computes for the tiny classifiers of `encoder_families`, kept in encoder_outputs.json.

Run as a script, it computes that file again. It needs torch and transformers 4.57 then, an environment of its own, with
tokenizers and safetensors.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from encoder_families import FAMILIES, LENGTHS, MASK, TOKENS, config_of, write_family

FILE = Path(__file__).with_suffix(".json")
EVERY = 7
"""Positions between two whose hidden states are kept."""
BUCKETS = ((256, 512), (32, 512), (8, 80), (12, 40))
"""Numbers of buckets of distances, and the farthest distance."""
DISTANCES = 600


def read_outputs() -> dict[str, Any]:
    """Name of a model -> {"shapes": name of a weight -> shape, "hidden": row -> position kept -> state, "scores"}; and
    "buckets": those of the distances from 0 to DISTANCES, for each of BUCKETS."""
    outputs: dict[str, Any] = json.loads(FILE.read_text())
    return outputs


def write_named(folder: Path, name: str, texts: list[str] | None = None) -> str:
    """Write the classifier of this name, with a tokenizer that is trained on the texts. Returns its folder."""
    return write_family(folder, config_of(name), read_outputs()[name]["shapes"], texts)


def make_outputs() -> None:
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    outputs: dict[str, Any] = {}
    for name in FAMILIES:
        fields = config_of(name)
        config = AutoConfig.for_model(**fields)
        empty = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
        shapes = {n: list(w.shape) for n, w in empty.state_dict().items()}
        with tempfile.TemporaryDirectory() as folder:
            path = write_family(Path(folder), fields, shapes)
            model = AutoModelForSequenceClassification.from_pretrained(
                path, dtype=torch.float32, attn_implementation="eager"
            ).eval()
        tokens, mask = torch.tensor(TOKENS), torch.tensor(MASK)
        with torch.no_grad():
            hidden = model.base_model(tokens, attention_mask=mask).last_hidden_state
            logits = model(tokens, attention_mask=mask).logits
        scores = logits if logits.shape[1] == 1 else logits.softmax(dim=1)
        kept = [row[:length:EVERY] for row, length in zip(hidden, LENGTHS, strict=True)]
        outputs[name] = {
            "shapes": shapes,
            "hidden": [[[round(float(x), 6) for x in state] for state in row] for row in kept],
            "scores": [[round(float(x), 8) for x in row] for row in scores],
        }
    distances = torch.arange(DISTANCES)
    outputs["buckets"] = [make_log_bucket_position(distances, *of).long().tolist() for of in BUCKETS]
    text = json.dumps(outputs, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"')
    FILE.write_text(text + "\n")


if __name__ == "__main__":
    make_outputs()
