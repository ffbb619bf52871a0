"""The fields of Levanter's optimizers, so that a typo is found without loading Levanter. A test compares them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from marin_assets.stages.train.errors import TrainError

OF_ALL = (
    "beta1",
    "beta2",
    "cooldown",
    "cycle_length",
    "cycles",
    "decay",
    "default_weight_decay_mask",
    "epsilon",
    "haps",
    "learning_rate",
    "lr_schedule",
    "max_grad_norm",
    "min_lr_ratio",
    "rewarmup",
    "warmup",
    "weight_decay",
    "weight_decay_modules",
)
_MATRICES = ("adam_lr", "backend_steps", "coefficient_type", "momentum", "muon_epsilon", "nesterov")
_MUON = (*_MATRICES, "adam_weight_decay", "lr", "use_kimi_scaling")
_NAMO = (*_MATRICES, "adam_weight_decay", "adamnorm_eps", "mu2", "scale_coeff")
OF_KIND: Mapping[str, tuple[str, ...]] = {
    "adam": ("adamc_weight_decay", "clip_update_norm", "nesterov", "skip_bad_steps", "update_rms_clipping"),
    "adamH": ("adam_lr", "nesterov"),
    "adopt": ("schedule_list",),
    "cautious": ("adamc_weight_decay", "gamma"),
    "grug_muon": _MUON,
    "lion": (),
    "mini": ("lr", "nesterov"),
    "muon": _MUON,
    "muonH": _MATRICES,
    "namo": _NAMO,
    "namoD": (*_NAMO, "col_state_clamp_c"),
}


def require_known_fields(kind: str, names: Iterable[str]) -> None:
    """Raise TrainError for a field that the kind does not have."""
    known = {*OF_ALL, *OF_KIND[kind]}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or sorted(OF_KIND[kind])[:3] or sorted(OF_ALL)[:3]
            raise TrainError(f"The optimizer {kind!r} has no field {name!r}; near it: {', '.join(near)}.")
