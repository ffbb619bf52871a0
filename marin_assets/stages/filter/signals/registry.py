"""Signals by name: single ones, or all of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from marin_assets.stages.filter.signals.redpajama import DOCUMENT_SIGNALS, LINE_MEANS, LINE_SIGNALS, Signal, Value
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.step.values import ensure_versioned, unwrap_versioned_value
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

SIGNALS: dict[str, Signal] = {**DOCUMENT_SIGNALS, **LINE_SIGNALS, **LINE_MEANS}
NUMBERS = (*DOCUMENT_SIGNALS, *LINE_MEANS)
"""The signals with one number a document."""
GROUPS: dict[str, tuple[str, ...]] = {"redpajama": tuple(SIGNALS), "redpajama_numbers": NUMBERS}

Measured = Callable[[RedPajamaText], dict[str, Value]]


class WithSignals(Protocol):
    """A config with signals."""

    @property
    def signals(self) -> Sequence[str]: ...

    @property
    def output_path(self) -> str: ...


class SignalError(MarinError, ValueError):
    """An unknown signal, or no list of signals."""


def version_signals(config: WithSignals) -> None:
    """Make the signals of a step's config enter its version. No signals leave the version as it is without the field.

    The config on a worker has plain values: its output path is a text.
    """
    if config.signals and not isinstance(config.output_path, str):
        object.__setattr__(config, "signals", ensure_versioned(config.signals))


def signal_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return each signal of the names and groups once, in their order. Raises SignalError."""
    given: Any = unwrap_versioned_value(names)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise SignalError(f'The signals are {given!r:.100}, expected a list of names, such as ["redpajama"].')
    signals: dict[str, None] = {}
    for name in given:
        if not isinstance(name, str) or (name not in GROUPS and name not in SIGNALS):
            raise SignalError(f"A signal is {name!r:.100}, {expected_one_of(str(name), [*GROUPS, *SIGNALS])}")
        signals |= dict.fromkeys(GROUPS.get(name, (name,)))
    return tuple(signals)


def measure_of(names: Sequence[str]) -> Measured:
    """Return the function that measures the signals of a text, by their names. Raises SignalError."""
    signals = [(name, SIGNALS[name]) for name in signal_names(names)]
    return lambda text: {name: signal(text) for name, signal in signals}
