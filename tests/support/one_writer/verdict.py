"""What happened, and whether it was allowed to: from the journal, and from what lies in the store at the end.

In:  a journal and a prefix.   Out: counts, and sentences about what may not be.

Promised of an output whose writers create their files: its manifest and its data are of one fence, and the manifest is
what lies there. Where writers replace files, one that is paused between its last look and its write may still put its
bytes over a newer writer's. In a bucket such an output is not published: a manifest is of one fence there too. After
the publication, and on a disk, such files are counted, not forbidden: the manifest shows them.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import google_crc32c
from record_fields import fields_of_record

from marin_resources.storage.manifest.checksum import MD5
from marin_resources.storage.manifest.manifest import Manifest, take_manifest
from marin_resources.storage.output import record
from marin_resources.storage.output.commit import Commit, State, read_commit
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Output, Status
from marin_resources.types.record import Record
from one_writer import plan
from one_writer.journal import Line, read_journal


@dataclass(kw_only=True)
class Verdict:
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "violations": self.violations}

    def demand(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.violations.append(sentence)


def judge(prefix: str, journal_path: str, ended: bool) -> Verdict:
    lines = read_journal(journal_path)
    verdict = Verdict(counts=counts_of(lines))
    verdict.demand(ended, "Not all outputs were complete in time.")
    of_output: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        of_output[line.output].append(line)
        if line.event == "crashed":
            verdict.violations.append(f"A worker ended with an error that it did not expect: {line.more['error']}")
    rounds = 1 + max(int(name.split("/")[0].split("-")[1]) for name in of_output if name)
    outputs = [output for number in range(rounds) for output in plan.outputs_of(number)]
    verdict.counts["outputs"] = len(outputs)
    verdict.counts["computed more than once"] = verdict.counts["computed"] - len(outputs)
    for output in outputs:
        judge_output(output, Store(prefix), of_output[output.name], verdict)
    return verdict


def counts_of(lines: list[Line]) -> Counter[str]:
    counts = Counter(line.event for line in lines)
    counts["takeovers"] = sum(1 for line in lines if line.event == "claimed" and line.fence > 1)
    counts["late publishes rejected"] = len(late_publishes(lines))
    counts["crashes"] = counts["died"] + counts["killed"]
    return counts


def late_publishes(lines: list[Line]) -> list[Line]:
    """Writers that tried the last step after another had taken over, and were refused by the commit object."""
    return [line for line in lines if line.event == "rejected" and line.more["by_fence"]]


def judge_output(output: Output, store: Store, lines: list[Line], verdict: Verdict) -> None:
    path, name = store.locate(output), output.name
    commit = read_commit(path)
    if commit is None or commit.state is not State.COMMITTED or commit.manifest is None:
        verdict.violations.append(f"{name}: its commit object is {commit!r}, expected one that is complete.")
        return
    decide_fences(name, lines, commit, verdict)
    seen = store.look([output])[output]
    verdict.demand(seen.status is Status.SUCCESS, f"{name}: its status is {seen.status!r} at the end.")
    fields = fields_of_record(path)
    of_commit = {"format_version": record.FORMAT_VERSION, **(commit.record or Record()).to_dict()}
    verdict.demand(fields == of_commit, f"{name}: its record {fields!r} is not that of its commit, {of_commit!r}.")
    fences = (of_commit.get("attempt"), of_commit.get("result"))
    verdict.demand(fences == (commit.fence, {"fence": commit.fence}), f"{name}: its record has the fences {fences!r}.")
    judge_data(output, commit.manifest, take_manifest(path), commit.fence, verdict, on_disk=is_local(path))


def decide_fences(name: str, lines: list[Line], commit: Commit, verdict: Verdict) -> None:
    claimed = [line for line in lines if line.event == "claimed"]
    owners = Counter(line.fence for line in claimed)
    verdict.demand(max(owners.values(), default=1) == 1, f"{name}: a fence was given twice: {owners!r}.")
    numbers = [line.fence for line in claimed]
    verdict.demand(max(numbers, default=0) <= commit.fence, f"{name}: {numbers!r} claimed, {commit.fence} published.")
    published = [(line.fence, line.more["owner"]) for line in lines if line.event == "published"]
    verdict.demand(len(published) <= 1, f"{name}: completed more than once, by {published!r}.")
    for one in published:
        verdict.demand(one == (commit.fence, commit.owner), f"{name}: {one!r} published, and {commit.fence} is there.")
    for line in claimed:
        right = line.fence != commit.fence or line.more["owner"] == commit.owner
        verdict.demand(right, f"{name}: fence {line.fence} was claimed by one and published by another.")


def judge_data(
    output: Output, manifest: Manifest, there: Manifest, fence: int, verdict: Verdict, *, on_disk: bool
) -> None:
    kind, name = plan.kind_of(output.name), output.name
    wanted = {part: part_checksums(name, part, fence) for part in plan.part_names()}
    of_one_fence = {e.name for e in manifest.entries} == set(wanted) and all(
        entry.checksum in wanted[entry.name] for entry in manifest.entries
    )
    if kind.creates:
        verdict.demand(of_one_fence, f"{name}: its manifest is not of fence {fence}: {manifest.to_json()!r}.")
        verdict.demand(there == manifest, f"{name}: what lies there is not what was published: {there.to_json()!r}.")
    else:
        if not on_disk:
            verdict.demand(of_one_fence, f"{name}: its manifest is not of fence {fence}: {manifest.to_json()!r}.")
        verdict.counts["replaced late, before publication"] += not of_one_fence
        verdict.counts["replaced late, after publication"] += there != manifest


def part_checksums(name: str, part: str, fence: int) -> tuple[str, str]:
    data = plan.part_bytes(name, part, fence)
    crc = base64.b64encode(google_crc32c.Checksum(data).digest()).decode()
    return f"crc32c:{crc}", f"{MD5}:{hashlib.md5(data, usedforsecurity=False).hexdigest()}"
