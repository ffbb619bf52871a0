"""The plain local path of a `mirror://` path, for readers without fsspec: TensorStore, Levanter, native Parquet.

In:  `mirror://x`, a file or a folder.   Out: its path in the local prefix, with every file copied there.

The total size of the missing files is reserved before the first is copied. An output with a status is copied from one
region alone, the cheapest where it is SUCCESS, so that no folder mixes two computations. Status, record and logs are
not copied: the copy is data, and not an output of the local prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from marin_resources.storage.control import control
from marin_resources.storage.manifest.bytes_progress import BytesProgress
from marin_resources.storage.mirror.choose import Choice, choose, look_up, not_found
from marin_resources.storage.mirror.fetch import TRIES, copy, fetch, is_elsewhere, own_output_error, refuse_own_output
from marin_resources.storage.mirror.protocol import SCHEME, MirrorError, Origin, Stored, is_control
from marin_resources.storage.mirror.relative import relative_of
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.storage.transfer.budget import Transfer, TransferBudgetError, current_budget
from marin_resources.storage.transfer.regions import Region, Regions, declared_regions
from marin_resources.types.output import Status

COPIES_AT_ONCE = 16
Listing = Mapping[str, Stored]
"""Name below the tree -> file."""
log = logging.getLogger(__name__)


def local_path_of(path: str) -> str:
    """The local path of a `mirror://` path, after copying its missing files. Other paths are returned unchanged.

    Raises FileNotFoundError, TransferBudgetError before anything is copied, and MirrorError.
    """
    if kind_of(path) is not StoreKind.MIRROR:
        return path
    regions = declared_regions()
    relative = relative_of(path, regions)
    if relative and choose(relative, regions) is not None:
        return fetch(relative, regions).path
    for _ in range(TRIES):
        listings = _list_all(relative, regions)
        missing = _missing(relative, regions, listings)
        if not missing:
            return regions.local.place(relative)
        refuse_own_output(relative, regions)
        _copy_missing(relative, regions, listings, missing)
    raise MirrorError(
        f"{path!r} changed {TRIES} times while it was copied. Stop the process that writes it, and run again."
    )


def copy_record(path: str) -> None:
    """Copy the record of an output, by its `mirror://` path, unless one is here. It names the path of its data: beside
    a copy of these, it makes no output of the copy."""
    regions = declared_regions()
    relative = relative_of(path, regions)
    here = regions.local.place(relative)
    if control.read(here) is not None:
        return
    for region in regions.others:
        snapshot = control.read(region.place(relative))
        if snapshot is not None:
            control.put(here, snapshot.data)
            return
    raise not_found(relative, regions)


def _copy_missing(
    relative: str, regions: Regions, listings: Mapping[Region, Listing], missing: Mapping[str, Choice]
) -> None:
    total_bytes = sum(choice.stored.size_bytes for choice in missing.values())
    source = max(regions.others, key=lambda r: sum(c.stored.size_bytes for c in missing.values() if c.region == r))

    def still_missing() -> dict[str, Choice]:
        here = store_of(regions.local.prefix).find_below(regions.local.place(relative))
        current = _missing(relative, regions, {**listings, regions.local: here})
        return {name: choice for name, choice in current.items() if missing.get(name) == choice}

    try:
        transfer = current_budget().reserve(SCHEME + relative, total_bytes, whole=True, source=source.name)
    except TransferBudgetError:
        if still_missing() == missing:
            raise
        return
    with transfer:  # transfers of the same files have ended by now, so list again
        _copy_all(relative, regions, still_missing(), transfer)


def _copy_all(relative: str, regions: Regions, missing: Mapping[str, Choice], transfer: Transfer) -> None:
    total_bytes = sum(choice.stored.size_bytes for choice in missing.values())
    progress = BytesProgress(f"copying {SCHEME + relative} to {regions.local.name}", total_bytes, log.info)

    def copy_one(name: str, choice: Choice) -> None:
        transfer.check()
        copy(choice, _below(relative, name), regions, transfer, charged_as=relative)
        progress.advance(choice.stored.size_bytes)

    with ThreadPoolExecutor(COPIES_AT_ONCE, thread_name_prefix="mirror") as pool:
        copies = [pool.submit(copy_one, name, choice) for name, choice in missing.items()]
        try:
            for future in copies:
                future.result()
        finally:
            for future in copies:
                future.cancel()


def _list_all(relative: str, regions: Regions) -> dict[Region, Listing]:
    with ThreadPoolExecutor(len(regions.all)) as pool:
        listings = pool.map(lambda region: store_of(region.prefix).find_below(region.place(relative)), regions.all)
        return dict(zip(regions.all, listings, strict=True))


def _missing(relative: str, regions: Regions, listings: Mapping[Region, Listing]) -> dict[str, Choice]:
    """Name -> file to copy. Empty if the local region has all; raises FileNotFoundError if no region has any."""
    here = listings[regions.local]
    if STATUS in here and not is_elsewhere(regions.local.place(relative)):
        if read_status(regions.local.place(relative)) is Status.SUCCESS:
            return {}
        raise own_output_error(relative, relative, regions)
    complete = [r for r in regions.others if STATUS in listings[r] and _is_complete(r.place(relative))]
    if complete:
        choices = _of_output(complete[0], listings[complete[0]], here)
    else:
        choices = _of_union(relative, regions, {r: files for r, files in listings.items() if STATUS not in files})
    if not choices and not here:
        raise not_found(relative, regions)
    return choices


def _is_complete(output_path: str) -> bool:
    """Whether the region has the data of a complete output there."""
    return read_status(output_path) is Status.SUCCESS and not is_elsewhere(output_path)


def _of_output(region: Region, files: Listing, here: Listing) -> dict[str, Choice]:
    """A complete output of another region: all its data files, except those that were written in the local region."""
    choices = {}
    for name, stored in files.items():
        origin = Origin(path=stored.path, generation=stored.generation)
        local = here.get(name)
        if not is_control(name) and (local is None or local.origin not in (None, origin)):
            replaces = local.generation if local else None
            choices[name] = Choice(region=region, stored=stored, origin=origin, replaces=replaces)
    return choices


def _of_union(relative: str, regions: Regions, listings: Mapping[Region, Listing]) -> dict[str, Choice]:
    """The union of all regions, file by file, without files inside an output of the local region."""
    look = _look_in(relative, listings)
    outputs = {name.rpartition("/")[0] + "/" for name in listings[regions.local] if name.endswith("/" + STATUS)}
    names = {name for files in listings.values() for name in files if not is_control(name)}
    candidates = (name for name in sorted(names) if not any(name.startswith(output) for output in outputs))
    chosen = {name: choose(_below(relative, name), regions, look) for name in candidates}
    return {name: choice for name, choice in chosen.items() if choice and choice.region != regions.local}


def _look_in(relative: str, listings: Mapping[Region, Listing]) -> Callable[[Region, str], Stored | None]:
    """Look up files in existing listings, so that a folder does not cost one request per file."""

    def look(region: Region, path: str) -> Stored | None:
        if region not in listings:
            return None
        if path == relative or path.startswith(relative + "/") or not relative:
            return listings[region].get(path[len(relative) :].strip("/"))
        return look_up(region, path)

    return look


def _below(relative: str, name: str) -> str:
    return "/".join(part for part in (relative, name) if part)
