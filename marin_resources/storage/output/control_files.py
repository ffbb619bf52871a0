"""Read control files of an output that a look at its state leaves out, to find damaged ones.

find_damage_ahead   of an output that is reused or computed next: the first file that a run will find damaged
find_damaged        of a complete output: every damaged file of its history, its jobs, its transfers and its lease
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.lease import lease
from marin_resources.storage.lease.text import UNREADABLE
from marin_resources.storage.manifest import manifest
from marin_resources.storage.manifest.listing import Listed
from marin_resources.storage.manifest.manifest import read_manifest
from marin_resources.storage.output import attempts, status
from marin_resources.storage.output.commit import State, read_commit
from marin_resources.storage.output.notes import job_notes
from marin_resources.storage.output.verification import Finding, Problem
from marin_resources.storage.paths import join
from marin_resources.storage.transfer import transfer_log_files as ledger_files
from marin_resources.types.output import Observed
from marin_resources.types.versioned_json import ControlFileError

NUMBERED = re.compile(rf"({re.escape(attempts.FOLDER)}|{re.escape(job_notes.FOLDER)})/([0-9]+)\.json")


@dataclass(frozen=True, kw_only=True)
class Damage:
    """A damaged or missing control file."""

    sentence: str
    blocks: bool
    """Whether a run cannot compute the output until the file is moved aside. Otherwise it reuses the output."""


def find_damage_ahead(observed: Observed, *, resumable: bool) -> Damage | None:
    """The first damage that a run meets when it takes this output next, of the files that it reads then.

    Of a complete output these are its record and its manifest, of an incomplete one also what precedes an attempt.
    """
    if observed.damage:
        return Damage(sentence=observed.damage, blocks=True)
    try:
        if observed.done:
            return _lost_manifest(observed)
        if observed.holder is None:
            return _damage_before_attempt(observed, resumable)
    except ControlFileError as error:
        return Damage(sentence=str(error), blocks=not observed.done)
    return None


def _lost_manifest(observed: Observed) -> Damage | None:
    path = observed.path
    digest = observed.record.manifest.digest
    if digest is None or read_manifest(path) is not None:
        return None
    sentence = (
        f"The manifest {join(path, manifest.NAME)!r} is missing, and the record beside it has its digest. Restore the "
        "file, or compute the output again."
    )
    return Damage(sentence=sentence, blocks=False)


def _damage_before_attempt(observed: Observed, resumable: bool) -> Damage | None:
    """Reads what a claim reads: the commit object, the notes of jobs, and the marks of earlier attempts."""
    path = observed.path
    committed = read_commit(path)
    if committed is not None and committed.state is State.COMMITTED and committed.record is not None:
        if observed.status is not None:
            return None  # its publisher died; the next run writes the status
        sentence = (
            f"The status {join(path, status.NAME)!r} is missing, and {join(path, manifest.NAME)!r} is committed. A run "
            "writes the status again, and computes nothing."
        )
        return Damage(sentence=sentence, blocks=False)
    job_notes.first_free_attempt(path)
    if resumable:
        attempts.latest_identity(path, attempts.latest_attempt(path))
    return None


def find_damaged(path: str, listed: Iterable[Listed]) -> tuple[Finding, ...]:
    """The damaged control files beside the record, the status and the manifest. The data do not depend on them."""
    findings = []
    for name in sorted({name for file in listed if (name := _file_of(file.name))}):
        try:
            _read(path, name)
        except ControlFileError as error:
            findings.append(Finding(name=name, problem=Problem.DAMAGED, expected=_expected(name), found=str(error)))
    return tuple(findings)


def _file_of(name: str) -> str | None:
    """The control file that a listed file is, or that it takes the place of, as a file of a folder of this name."""
    numbered = NUMBERED.match(name)
    if numbered is not None:
        return numbered[0] if name[numbered.end() :][:1] in ("", "/") else None
    return next((file for file in _READERS if name == file or name.startswith(f"{file}/")), None)


def _read(path: str, name: str) -> None:
    numbered = NUMBERED.fullmatch(name)
    if numbered is None:
        _READERS[name](path)
    elif numbered[1] == attempts.FOLDER:
        attempts.read_attempt(path, int(numbered[2]))
    else:
        job_notes.read_note(join(path, name))


def _expected(name: str) -> str:
    numbered = NUMBERED.fullmatch(name)
    if numbered is None:
        return "a lease" if name == lease.NAME else "a ledger of transfers"
    return "the mark of an attempt" if numbered[1] == attempts.FOLDER else "a job note"


def _read_lease(path: str) -> None:
    holder = lease.holder_of(path)
    if holder is not None and holder.owner.startswith(UNREADABLE):
        raise ControlFileError(f"The holder of the lease is {holder.owner}. Move the file aside.")


_READERS: dict[str, Callable[[str], Any]] = {
    lease.NAME: _read_lease,
    ledger_files.NAME: lambda path: ledger_files.LedgerInFile(path).read(),
}
