"""Verified outputs as lines for people and as JSON: what is wrong, and which step to rerun."""

from __future__ import annotations

import enum
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.plan.validation import key_of
from marin_assets.step.graph import Node
from marin_resources.output import Status
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.verification import Verification
from marin_resources.storage.paths import StoreKind, is_local, kind_of

SHOWN_FINDINGS = 20
"""Of one output; --json has all."""


class State(enum.StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    UNVERIFIED = "not verified"
    """As far as it could be compared nothing is wrong."""
    NOT_THERE = "not there"


@dataclass(frozen=True, kw_only=True)
class Verified:
    node: Node
    path: str
    status: Status | None
    verdict: Verification | None
    """None if there is no complete output."""
    readers: tuple[str, ...] = ()
    """Names of complete steps that read an output that is wrong, directly or through others."""

    @property
    def state(self) -> State:
        if self.verdict is None:
            return State.NOT_THERE
        if not self.verdict.ok:
            return State.WRONG
        return State.UNVERIFIED if self.verdict.unverified else State.RIGHT


def lines_of(verified: Sequence[Verified], prefix: str) -> Iterator[str]:
    """What is not there, what could not be verified, and last, to be seen, what is wrong."""
    for each in verified:
        if each.state is State.NOT_THERE:
            yield f"not there: {each.node.name} ({each.status or 'nobody has begun'}) {each.path}"
    for each in verified:
        if each.state is State.UNVERIFIED and each.verdict:
            yield f"not verified: {each.node.name}: {each.verdict.unverified}"
    for each in verified:
        if each.state is State.WRONG:
            yield from _lines_of_wrong(each, prefix)


def summary_of(verified: Sequence[Verified], sampled: str) -> str:
    """One line; `sampled` says how the files were chosen."""
    states = Counter(each.state for each in verified)
    verdicts = [each.verdict for each in verified if each.verdict is not None]
    files, compared = sum(v.files for v in verdicts), sum(v.compared_files for v in verdicts)
    share = f"{100 * compared / files:.0f} %, " if files else ""
    counts = ", ".join(f"{states[state]} {state}" for state in State if states[state])
    return (
        f"{len(verified)} outputs: {counts}. Names and sizes of {files} files compared, and the checksums of "
        f"{compared} ({share}{readable_bytes(sum(v.compared_bytes for v in verdicts))}{sampled})."
    )


def to_json(verified: Sequence[Verified]) -> dict[str, Any]:
    return {"ok": all(each.state is not State.WRONG for each in verified), "outputs": [_as_json(e) for e in verified]}


def rerun_commands(verified: Verified, prefix: str) -> tuple[str, str]:
    """Shell commands: remove the output, since one that is complete is reused, and make it."""
    selection = f'key:"{"/".join(key_of(verified.node))}"'
    make = f"dagster asset materialize -m marin_assets.definitions --select {shlex.quote(selection)}"
    return f"{_remover(verified.path)} {shlex.quote(verified.path)}", f"MARIN_PREFIX={shlex.quote(prefix)} {make}"


def _lines_of_wrong(each: Verified, prefix: str) -> Iterator[str]:
    assert each.verdict is not None
    findings = each.verdict.findings
    counts = Counter(finding.problem for finding in findings)
    told = ", ".join(f"{count} {problem}" for problem, count in counts.items())
    yield f"wrong: {each.node.name}: {told}; rerun step {each.node.name!r}, {each.path}"
    yield from (f"    {finding.sentence()}" for finding in findings[:SHOWN_FINDINGS])
    if len(findings) > SHOWN_FINDINGS:
        yield f"    and {len(findings) - SHOWN_FINDINGS} more; --json tells all"
    yield from (f"    $ {command}" for command in rerun_commands(each, prefix))
    if each.readers:
        yield f"    read by {', '.join(each.readers)}: to be made anew too if they have read what is wrong"


def _remover(path: str) -> str:
    if is_local(path):
        return "rm -r"
    return "aws s3 rm --recursive" if kind_of(path) is StoreKind.S3 else "gcloud storage rm -r"


def _as_json(each: Verified) -> dict[str, Any]:
    told = {"step": each.node.name, "path": each.path, "state": each.state.value, "status": each.status}
    if each.verdict is None:
        return told
    rerun = {"rerun": each.node.name, "readers": list(each.readers)} if not each.verdict.ok else {}
    return {**told, **each.verdict.to_json(), **rerun}
