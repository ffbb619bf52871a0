"""The prefix: can this account read, write, replace and remove what a step does, and are all regions there?

A small file in `<prefix>/.marin/` is written, replaced and removed, under the conditions that a lease stands on.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator

from marin_resources.configuration.settings import SettingError, default_prefix
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.doctor.folders import why_unusable
from marin_resources.doctor.store import require_store
from marin_resources.storage.control import control
from marin_resources.storage.control.conditions import require_conditions
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.filesystems.rights import ADVICE, group_name, why_unwritable
from marin_resources.storage.filesystems.sharing import is_shared
from marin_resources.storage.paths import absolute, is_local, join
from marin_resources.storage.transfer.account import default_budget_bytes
from marin_resources.storage.transfer.regions import declared_regions

SUBJECT = "prefix"
REPAIR = "Its owner runs the commands of docs/how-to/share-a-folder.md for a folder that has outputs already."
REGIONS = "regions"


def look() -> Iterator[Finding]:
    """Raises SettingError and UnavailableError for what a step would meet too."""
    prefix = default_prefix()
    try:
        yield from look_at(prefix)
    except ImportError as error:
        extra = "Run: uv sync --inexact --extra s3" if prefix.startswith("s3") else "Install it."
        yield wrong(SUBJECT, f"{prefix!r} needs a package that is not installed ({error.name or error}). {extra}")


def look_at(prefix: str) -> Iterator[Finding]:
    """Raises SettingError and UnavailableError for what a step would meet too."""
    require_store(prefix)
    if is_local(prefix) and not os.path.isdir(absolute(prefix)):
        yield _not_there_yet(prefix)
        return
    control.refuse_store_without_conditions(prefix)
    if is_local(prefix) and (missing := _missing_right(absolute(prefix))):
        yield missing
        return
    failed = _try_rights(join(prefix, f".marin/doctor-{uuid.uuid4().hex}"))
    if failed:
        yield wrong(SUBJECT, failed)
        return
    require_conditions(prefix)
    yield ok(SUBJECT, f"{prefix}: read, written, replaced and removed")
    if is_local(prefix):
        yield from _look_at_group(absolute(prefix))


def _not_there_yet(prefix: str) -> Finding:
    why = why_unusable(absolute(prefix))
    if not why:
        return ok(SUBJECT, f"{prefix} does not exist yet. The first step creates it.")
    return wrong(SUBJECT, f"{prefix} cannot be created: {why}. Set MARIN_PREFIX to a folder of yours.")


def _missing_right(prefix: str) -> Finding | None:
    """Complete outputs are reused without the right to write."""
    if not os.access(prefix, os.R_OK | os.X_OK):
        return None  # nothing works: the first operation reports it
    if why := why_unwritable(prefix):
        return warning(SUBJECT, f"{why}. Complete outputs are read and reused; nothing can be computed there. {ADVICE}")
    if why := why_unwritable(join(prefix, ".marin")):
        return wrong(SUBJECT, f"{why}. Steps cannot be computed. {REPAIR}")
    return None


def _look_at_group(prefix: str) -> Iterator[Finding]:
    """A folder that a group shares, or that was meant to be shared."""
    state = os.stat(prefix)
    group = group_name(state.st_gid)
    if is_shared(prefix):
        if private := [name for name in _folders_in(prefix) if not is_shared(join(prefix, name))]:
            yield warning(
                SUBJECT,
                f"{prefix!r} is shared with the group {group}, and {private[0]!r} in it is not, so others cannot "
                f"compute there. {REPAIR}",
            )
        else:
            yield ok(SUBJECT, f"{prefix} is shared with the group {group}, with any umask")
    elif state.st_mode & stat.S_IWGRP and state.st_gid != os.getgid():
        yield warning(
            SUBJECT,
            f"{prefix!r} can be written by the group {group} and has no setgid bit, so what one user creates there "
            "others cannot change. Run: chmod g+s on it and the folders below.",
        )


def _folders_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _try_rights(probe: str) -> str:
    """The first of a step's operations that fails, as a sentence; empty if none does."""
    doing = "read"
    try:
        control.read(probe)
        doing = "written"
        first = control.write(probe, b"marin doctor, first", expected=None)
        doing = "replaced"
        second = control.write(probe, b"marin doctor, second", expected=first)
        doing = "removed"
        control.delete(probe, expected=second)
    except ConflictError:
        return f"A file below {probe!r} changed by itself, so the store does not keep what is written. Use another."
    except (OSError, ValueError) as error:
        if isinstance(error, UnavailableError) and error.__cause__ is None:
            return str(error)
        return (
            f"Files of the prefix cannot be {doing} with the account of this machine "
            f"({str(error).removesuffix('.')}). Give it the right to read, create, replace and delete objects there, "
            "such as Google's role roles/storage.objectUser, or set MARIN_PREFIX to a prefix of yours."
        )
    return ""


def look_at_regions() -> Iterator[Finding]:
    """Raises SettingError for a declaration that cannot be read."""
    default_budget_bytes()
    regions = declared_regions()
    for region in regions.others:
        try:
            control.require_reachable(region.prefix)
            if is_local(region.prefix) and not os.path.isdir(absolute(region.prefix)):
                yield wrong(REGIONS, f"{region.name} is {region.prefix!r}, which is no folder. Mount it, or remove it.")
                continue
            control.read(join(region.prefix, ".marin/doctor"))
        except (OSError, ValueError, SettingError) as error:
            yield wrong(
                REGIONS,
                f"{region.name} cannot be read ({error}). Steps that read mirror:// fail until it can. Make it "
                "readable, or take it out of MARIN_MIRROR_PREFIXES.",
            )
        else:
            yield ok(REGIONS, f"{region.name}: {region.prefix} is readable")
    if not regions.others:
        yield ok(REGIONS, f"{regions.local.name} alone")
