"""Bring one file here, or read a part of it where it lies. Both are charged to the budget before a byte moves."""

from __future__ import annotations

from collections.abc import Iterator

from marin_resources.storage.mirror.choose import Choice, choose, nowhere
from marin_resources.storage.mirror.stored import SCHEME, ChangedError, MirrorError, Stored, is_control
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.transfer.budget import Transfer, TransferBudgetError, current_budget
from marin_resources.storage.transfer.ledger import Moved
from marin_resources.storage.transfer.regions import Regions

TRIES = 5
"""Of a copy, when others write the same file or its source."""


def fetch(relative: str, regions: Regions) -> Stored:
    """The file in the local region, copied there if need be.

    Raises FileNotFoundError, TransferBudgetError, and MirrorError where nothing may be copied to.
    """
    for _ in range(TRIES):
        found = choose(relative, regions)
        if found is None:
            raise nowhere(relative, regions)
        if found.region == regions.local:
            return found.stored
        refuse_control(relative)
        refuse_own_output(relative, regions)
        try:
            transfer = current_budget().reserve(
                SCHEME + relative, found.stored.size_bytes, whole=True, source=found.region.name
            )
        except TransferBudgetError:
            if choose(relative, regions) == found:
                raise
            continue
        with transfer:  # whoever moved the same file has ended by now, so look again
            if choose(relative, regions) == found:
                copy(found, relative, regions, transfer)
    raise MirrorError(
        f"{SCHEME + relative!r} changed again and again while it was copied to {regions.local.name}. Find out who "
        "writes it, and run again."
    )


def copy(found: Choice, relative: str, regions: Regions, transfer: Transfer, told_as: str | None = None) -> None:
    """Copy what was found into the local region; not if it, or what is there, changes meanwhile.

    `told_as` is what the account names in place of the file: the folder that it is a part of.
    """
    assert found.origin is not None
    target = regions.local.place(relative)
    try:
        store_of(target).take(
            found.stored,
            target,
            found.origin,
            found.replaces,
            transfer.check,
            source_store=store_of(found.stored.path),
        )
    except (FileExistsError, ChangedError):
        return
    transfer.moved(moved(found, told_as or relative, regions, found.stored.size_bytes, files=1))


def read_part(found: Choice, relative: str, regions: Regions, start: int, end: int) -> bytes:
    """Bytes of another region's file, which is not copied."""
    path = SCHEME + relative
    with current_budget().reserve(path, end - start, whole=False, source=found.region.name) as transfer:
        data = store_of(found.stored.path).read(found.stored, start, end)
        transfer.moved(moved(found, relative, regions, len(data), files=0))
    return data


def moved(found: Choice, relative: str, regions: Regions, size_bytes: int, *, files: int) -> Moved:
    return Moved(
        path=SCHEME + relative,
        origin=found.region.name,
        to=regions.local.name,
        bytes=size_bytes,
        dollars=regions.dollars(found.region, size_bytes),
        files=files,
    )


def refuse_control(relative: str) -> None:
    """Raise MirrorError for a status, record or log: copied, it would say of this region what holds in another."""
    if is_control(relative):
        raise MirrorError(
            f"{SCHEME + relative!r} is a control file of another region, and these are not copied. Open it as it is, "
            "through fsspec."
        )


def refuse_own_output(relative: str, regions: Regions) -> None:
    """Raise MirrorError if `relative` lies in an output of the local prefix itself: one writer for an output."""
    for folder in _folders(relative):
        status = regions.local.place(f"{folder}/{STATUS}")
        if store_of(status).find(status) is not None:
            raise own_output(relative, folder, regions)


def own_output(relative: str, folder: str, regions: Regions) -> MirrorError:
    return MirrorError(
        f"{SCHEME + relative!r} is not complete in {regions.local.name} ({regions.local.prefix!r}), where {folder!r} "
        "is an output with a status of its own, and nothing is copied into one. Run its step, or remove that folder to "
        "read it from another region."
    )


def _folders(relative: str) -> Iterator[str]:
    while relative := relative.rpartition("/")[0]:
        yield relative
