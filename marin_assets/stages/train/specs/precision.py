"""The precision of a training, as a text: a policy of jmp, such as "p=f32,c=bfloat16"."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.stages.train.errors import TrainError

BYTES = {"bf16": 2, "bfloat16": 2, "f16": 2, "float16": 2, "half": 2, "f32": 4, "float32": 4, "full": 4}
"""Bytes of a number, by jmp's name. jax computes float64 as float32 here."""
PARTS = {"p": "p", "params": "p", "c": "c", "compute": "c", "o": "o", "output": "o"}


@dataclass(frozen=True, kw_only=True)
class Precision:
    parameter_bytes: int
    compute_bytes: int


def read_precision(text: str) -> Precision:
    """The numbers of a policy. Raises TrainError for one that jmp would not take, or take as another."""
    if "=" not in text:
        return Precision(parameter_bytes=_bytes_of(text, text), compute_bytes=_bytes_of(text, text))
    sizes = {"p": 4}
    for part in text.split(","):
        name, _, kind = part.partition("=")
        if name not in PARTS:
            raise _error(text)
        sizes[PARTS[name]] = _bytes_of(kind, text)
    return Precision(parameter_bytes=sizes["p"], compute_bytes=sizes.get("c", sizes["p"]))


def _bytes_of(kind: str, text: str) -> int:
    if kind not in BYTES:
        raise _error(text)
    return BYTES[kind]


def _error(text: str) -> TrainError:
    return TrainError(
        f"precision is {text!r}, expected p= of the parameters and c= of the compute, each of {', '.join(BYTES)}: "
        "'p=f32,c=bfloat16'."
    )
