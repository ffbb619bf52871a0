"""Results of `marin verify` as text and as JSON: the findings, and the step to rerun."""

from __future__ import annotations

import enum
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.cli.hint import about_step, to_compute
from marin_assets.step.graph import Node
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.verification import Verification
from marin_resources.storage.paths import StoreKind, is_local, kind_of
from marin_resources.types.output import Status

SHOWN_FINDINGS = 20
"""Findings printed of one output; --json has all."""


class State(enum.StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    UNVERIFIED = "not verified"
    """No finding, and not everything could be compared."""
    NOT_THERE = "not there"


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    node: Node
    path: str
    status: Status | None
    verification: Verification | None
    """None if the output is not complete."""
    adopted: bool = False
    """Whether its data were adopted: they are not at its path."""
    readers: tuple[str, ...] = ()
    """Names of complete steps that read a wrong output, directly or through others."""

    @property
    def state(self) -> State:
        if self.verification is None:
            return State.NOT_THERE
        if not self.verification.ok:
            return State.WRONG
        return State.UNVERIFIED if self.verification.unverified else State.RIGHT


def exit_code(verified: Iterable[VerifyReport]) -> int:
    """1 if an output is wrong, 3 if none is and one could not be verified, else 0."""
    states = {report.state for report in verified}
    if State.WRONG in states:
        return 1
    return 3 if State.UNVERIFIED in states else 0


def lines_of(verified: Sequence[VerifyReport], prefix: str, script: str | None) -> Iterator[str]:
    """Lines for missing outputs, then unverified ones, and last, to be seen, wrong ones."""
    for report in verified:
        if report.state is State.NOT_THERE:
            yield f"not there: {report.node.output.label} ({report.status or 'never begun'}) {report.path}"
    for report in verified:
        if report.state is State.UNVERIFIED and report.verification:
            yield f"not verified: {report.node.output.label}: {report.verification.unverified}"
    for report in verified:
        if report.state is State.WRONG:
            yield from _lines_of_wrong(report, prefix, script)


def summary_of(verified: Sequence[VerifyReport], sampled: str) -> str:
    """One line; `sampled` describes how the files were chosen."""
    states = Counter(report.state for report in verified)
    verifications = [report.verification for report in verified if report.verification is not None]
    files, compared = sum(v.files for v in verifications), sum(v.compared_files for v in verifications)
    share = f"{100 * compared / files:.0f} %, " if files else ""
    counts = ", ".join(f"{states[state]} {state}" for state in State if states[state])
    return (
        f"{len(verified)} outputs: {counts}. Names and sizes of {files} files compared, and the checksums of "
        f"{compared} ({share}{readable_bytes(sum(v.compared_bytes for v in verifications))}{sampled})."
    )


def to_json(verified: Sequence[VerifyReport]) -> dict[str, Any]:
    return {"ok": exit_code(verified) == 0, "outputs": [_as_json(report) for report in verified]}


def rerun_commands(verified: VerifyReport, prefix: str, script: str | None) -> tuple[str, str]:
    """Shell commands: remove the output, as a complete one would be reused, or undo its adoption; and compute it."""
    remove = f"{_remover(verified.path)} {shlex.quote(verified.path)}"
    undo = f"{about_step('adopt', verified.node, script=script, prefix=prefix)} --undo"
    return undo if verified.adopted else remove, to_compute(verified.node, script=script, prefix=prefix)


def _lines_of_wrong(report: VerifyReport, prefix: str, script: str | None) -> Iterator[str]:
    assert report.verification is not None
    findings = report.verification.findings
    todo = "the data are right" if report.verification.data_ok else f"rerun step {report.node.output.label!r}"
    yield f"wrong: {report.node.output.label}: {report.verification.counts()}; {todo}, {report.path}"
    yield from (f"    {finding.sentence()}" for finding in findings[:SHOWN_FINDINGS])
    if len(findings) > SHOWN_FINDINGS:
        yield f"    and {len(findings) - SHOWN_FINDINGS} more; --json has all"
    if not report.verification.data_ok:
        yield from (f"    $ {command}" for command in rerun_commands(report, prefix, script))
    if report.readers:
        yield f"    read by {', '.join(report.readers)}: recompute them too if they have read the wrong files"


def _remover(path: str) -> str:
    if is_local(path):
        return "rm -r"
    return "aws s3 rm --recursive" if kind_of(path) is StoreKind.S3 else "gcloud storage rm -r"


def _as_json(report: VerifyReport) -> dict[str, Any]:
    fields = {
        "step": report.node.output.label,
        "path": report.path,
        "state": report.state.value,
        "status": report.status,
    }
    if report.verification is None:
        return fields
    rerun = (
        {"rerun": report.node.output.label, "readers": list(report.readers)} if not report.verification.data_ok else {}
    )
    return {**fields, **report.verification.to_json(), **rerun}
