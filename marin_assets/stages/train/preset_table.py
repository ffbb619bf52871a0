"""The presets as a table: parameters, operations of a token, memory, and the smallest slices. In the documentation."""

from __future__ import annotations

from marin_assets.stages.train.sizes import GB, ModelSize, size_of, smallest_slices
from marin_assets.stages.train.specs.presets import LLAMA3_VOCABULARY, PRESETS
from marin_assets.step.values import unwrap_versioned_value

HEAD = (
    "| preset | family | parameters | active | FLOPs a token | state | activations | smallest slices |",
    "|---|---|---|---|---|---|---|---|",
)


def preset_table() -> str:
    """Lines of Markdown, with the vocabulary of Llama 3."""
    rows = []
    for name, spec in PRESETS.items():
        model = unwrap_versioned_value(spec)
        size = size_of(model, LLAMA3_VOCABULARY)
        cells = [f"`{name}`", model.family, *_numbers(size), ", ".join(each.kind for each in smallest_slices(size))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*HEAD, *rows])


def _numbers(size: ModelSize) -> list[str]:
    return [
        _short(size.parameters),
        _short(size.active_parameters),
        f"{size.flops_per_token:.2e}",
        f"{size.state_bytes / GB:,.1f} GB",
        f"{size.activation_bytes / GB:.2f} GB",
    ]


def _short(count: int) -> str:
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.1f} M"
