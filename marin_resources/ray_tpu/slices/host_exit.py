"""The end of the function on one host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.ray_tpu.slices.host_faults import HostFault
from marin_resources.ray_tpu.slices.reservation import Host


@dataclass(frozen=True, kw_only=True)
class Returned:
    """The function returned."""

    host: Host
    result: Any
    """As JSON."""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """The function raised, or its process could not be set up. The host has reported it."""

    host: Host
    error: str
    """One sentence."""
    traceback: str
    fault: HostFault | None = None
    """The fault of the host that the error shows."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """The host, or the process on it, is gone without a report."""

    host: Host
    error: Exception
    """Ray's."""


@dataclass(frozen=True, kw_only=True)
class Hung:
    """The function reported no step for too long. Its process has printed its stacks, and is gone."""

    host: Host
    error: str
    """One sentence."""
    step: int | None
    """The last step that it reported."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """It was stopped, as another host had raised or was lost."""

    host: Host


End = Returned | Raised | Lost | Hung | Cancelled


def first_line(error: BaseException) -> str:
    """The error as one line: "NodeDiedError: Task failed because …"."""
    cause = getattr(error, "cause", None) or error
    text = str(cause).strip()
    return f"{type(cause).__name__}: {text.splitlines()[0]}" if text else type(cause).__name__


class CodeGoneError(RuntimeError):
    """The code of the step is no longer on the host."""


class SilentHostError(RuntimeError):
    """Ray's head has declared the host dead, and nothing has come from its process."""


def report_of_result(result: Any) -> dict[str, Any]:
    """The report of a host when the function has returned."""
    return {"result": result}


def report_of_error(error: str, traceback: str, fault: HostFault | None = None) -> dict[str, Any]:
    """The report of a host when the function has raised."""
    return {"error": error, "traceback": traceback, "fault": fault.value if fault else None}


def report_of_missing_code(error: str) -> dict[str, Any]:
    """The report of a host when the function has raised as its code was removed."""
    return {"missing_code": error}


def end_of_report(host: Host, report: Mapping[str, Any]) -> Returned | Raised | Lost:
    """The end that a host has reported."""
    if "missing_code" in report:
        return Lost(host=host, error=CodeGoneError(report["missing_code"]))
    if "error" in report:
        fault = HostFault(report["fault"]) if report.get("fault") else None
        return Raised(host=host, error=report["error"], traceback=report["traceback"], fault=fault)
    return Returned(host=host, result=report["result"])
