"""Copy one file into the local region, or read a part of it remotely. Both reserve their bytes in the budget first."""

from __future__ import annotations

from collections.abc import Iterator

from marin_resources.storage.mirror.choose import Choice, choose, not_found
from marin_resources.storage.mirror.protocol import SCHEME, ChangedError, FileCopy, MirrorError, Stored, is_control
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.output.record import data_path_of
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.transfer.budget import Transfer, TransferBudgetError, current_budget
from marin_resources.storage.transfer.regions import Regions
from marin_resources.storage.transfer.transfer_log import Moved

TRIES = 5
"""Tries of a copy, while other processes write the same file or its source."""


def fetch(relative: str, regions: Regions) -> Stored:
    """The file in the local region, copied there if necessary.

    Raises FileNotFoundError, TransferBudgetError, and MirrorError if it may not be copied.
    """
    for _ in range(TRIES):
        choice = choose(relative, regions)
        if choice is None:
            raise not_found(relative, regions)
        if choice.region == regions.local:
            return choice.stored
        refuse_control(relative)
        refuse_own_output(relative, regions)
        try:
            transfer = current_budget().reserve(
                SCHEME + relative, choice.stored.size_bytes, whole=True, source=choice.region.name
            )
        except TransferBudgetError:
            if choose(relative, regions) == choice:
                raise
            continue
        with transfer:  # transfers of the same file have ended by now, so choose again
            if choose(relative, regions) == choice:
                copy(choice, relative, regions, transfer)
    raise MirrorError(
        f"{SCHEME + relative!r} changed {TRIES} times while it was copied to {regions.local.name}. Stop the process "
        "that writes it, and run again."
    )


def copy(choice: Choice, relative: str, regions: Regions, transfer: Transfer, charged_as: str | None = None) -> None:
    """Copy the chosen file into the local region. Do nothing if the source or the target changes meanwhile.

    The ledger names `charged_as` in place of the file: the folder that it is a part of.
    """
    assert choice.origin is not None
    target = regions.local.place(relative)
    try:
        store_of(target).write_copy(
            FileCopy(
                source=choice.stored,
                source_store=store_of(choice.stored.path),
                target=target,
                origin=choice.origin,
                replaces=choice.replaces,
                check=transfer.check,
            )
        )
    except (FileExistsError, ChangedError):
        return
    transfer.moved(moved(choice, charged_as or relative, regions, choice.stored.size_bytes, files=1))


def read_part(choice: Choice, relative: str, regions: Regions, start: int, end: int) -> bytes:
    """Read bytes of another region's file without copying it."""
    path = SCHEME + relative
    with current_budget().reserve(path, end - start, whole=False, source=choice.region.name) as transfer:
        data = store_of(choice.stored.path).read(choice.stored, start, end)
        transfer.moved(moved(choice, relative, regions, len(data), files=0))
    return data


def moved(choice: Choice, relative: str, regions: Regions, size_bytes: int, *, files: int) -> Moved:
    return Moved(
        path=SCHEME + relative,
        origin=choice.region.name,
        to=regions.local.name,
        bytes=size_bytes,
        dollars=regions.dollars(choice.region, size_bytes),
        files=files,
    )


def refuse_control(relative: str) -> None:
    """Raise MirrorError for a status, record or log: a copy would describe another region's output as this region's."""
    if is_control(relative):
        raise MirrorError(
            f"{SCHEME + relative!r} is a control file of another region, and control files are not copied. Open it "
            "through fsspec, which reads it remotely."
        )


def refuse_own_output(relative: str, regions: Regions) -> None:
    """Raise MirrorError if `relative` is inside an output whose data are in the local prefix: it has one writer."""
    for folder in _folders(relative):
        place = regions.local.place(folder)
        status = f"{place}/{STATUS}"
        if store_of(status).find(status) is not None and not is_elsewhere(place):
            raise own_output_error(relative, folder, regions)


def is_elsewhere(output_path: str) -> bool:
    """Whether another region has the data of the complete output at `output_path`, which is only its record."""
    return data_path_of(output_path) != output_path


def own_output_error(relative: str, folder: str, regions: Regions) -> MirrorError:
    return MirrorError(
        f"{SCHEME + relative!r} is not complete in {regions.local.name} ({regions.local.prefix!r}), where {folder!r} "
        "is an output with a status of its own, and nothing is copied into it. Run its step, or remove that folder to "
        "read it from another region."
    )


def _folders(relative: str) -> Iterator[str]:
    """The folders above a path, the innermost first."""
    while relative := relative.rpartition("/")[0]:
        yield relative
