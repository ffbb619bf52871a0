"""A plain path for what `mirror://…` means, for readers that know no fsspec: TensorStore, Levanter, native Parquet.

In:  `mirror://x`, a file or a folder.   Out: its path in the local prefix, with every file of it there.

The sizes of all files that are missing here are added up and reserved before the first is copied. An output with a
status is taken from one region alone, the cheapest where it is SUCCESS, so that no tree is mixed of two computations.
Status, record and logs are not copied: what is copied is data, and no output of this prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from marin_resources.output import Status
from marin_resources.storage.manifest.bytes_progress import BytesProgress
from marin_resources.storage.mirror.choose import Choice, choose, look_up, nowhere
from marin_resources.storage.mirror.fetch import TRIES, copy, fetch, own_output, refuse_own_output
from marin_resources.storage.mirror.relative import relative_of
from marin_resources.storage.mirror.stored import SCHEME, MirrorError, Origin, Stored, is_control
from marin_resources.storage.mirror.stores import store_of
from marin_resources.storage.output.status import NAME as STATUS
from marin_resources.storage.output.status import read_status
from marin_resources.storage.transfer.budget import Transfer, TransferBudgetError, current_budget
from marin_resources.storage.transfer.regions import Region, Regions, declared_regions

COPIES_AT_ONCE = 16
Listing = Mapping[str, Stored]
"""Name below the tree -> file."""
log = logging.getLogger(__name__)


def local_path_of(path: str) -> str:
    """Where `path` can be read in the local region; what is missing there is copied. Other paths are themselves.

    Raises FileNotFoundError, TransferBudgetError before anything is copied, and MirrorError.
    """
    if not path.startswith(SCHEME):
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
        _bring(relative, regions, listings, missing)
    raise MirrorError(f"{path!r} changed again and again while it was copied. Find out who writes it, and run again.")


def _bring(relative: str, regions: Regions, listings: Mapping[Region, Listing], missing: Mapping[str, Choice]) -> None:
    total_bytes = sum(choice.stored.size_bytes for choice in missing.values())
    source = max(regions.others, key=lambda r: sum(c.stored.size_bytes for c in missing.values() if c.region == r))

    def still_missing() -> dict[str, Choice]:
        here = store_of(regions.local.prefix).find_below(regions.local.place(relative))
        found = _missing(relative, regions, {**listings, regions.local: here})
        return {name: choice for name, choice in found.items() if missing.get(name) == choice}

    try:
        transfer = current_budget().reserve(SCHEME + relative, total_bytes, whole=True, source=source.name)
    except TransferBudgetError:
        if still_missing() == missing:
            raise
        return
    with transfer:  # whoever moved the same files has ended by now, so look again
        _copy_all(relative, regions, still_missing(), transfer)


def _copy_all(relative: str, regions: Regions, missing: Mapping[str, Choice], transfer: Transfer) -> None:
    total_bytes = sum(choice.stored.size_bytes for choice in missing.values())
    progress = BytesProgress(f"copying {SCHEME + relative} to {regions.local.name}", total_bytes, log.info)

    def copy_one(name: str, choice: Choice) -> None:
        transfer.check()
        copy(choice, _below(relative, name), regions, transfer, told_as=relative)
        progress.advance(choice.stored.size_bytes)

    with ThreadPoolExecutor(COPIES_AT_ONCE, thread_name_prefix="mirror") as pool:
        copies = [pool.submit(copy_one, name, choice) for name, choice in missing.items()]
        try:
            for one in copies:
                one.result()
        finally:
            for one in copies:
                one.cancel()


def _list_all(relative: str, regions: Regions) -> dict[Region, Listing]:
    with ThreadPoolExecutor(len(regions.all)) as pool:
        found = pool.map(lambda region: store_of(region.prefix).find_below(region.place(relative)), regions.all)
        return dict(zip(regions.all, found, strict=True))


def _missing(relative: str, regions: Regions, listings: Mapping[Region, Listing]) -> dict[str, Choice]:
    """Name -> what is to be copied under it. Empty if all is here; raises FileNotFoundError if nothing is anywhere."""
    here = listings[regions.local]
    if STATUS in here:
        if read_status(regions.local.place(relative)) is Status.SUCCESS:
            return {}
        raise own_output(relative, relative, regions)
    complete = [r for r in regions.others if STATUS in listings[r] and _is_complete(r.place(relative))]
    if complete:
        found = _of_output(complete[0], listings[complete[0]], here)
    else:
        found = _of_union(relative, regions, {r: files for r, files in listings.items() if STATUS not in files})
    if not found and not here:
        raise nowhere(relative, regions)
    return found


def _is_complete(output_path: str) -> bool:
    return read_status(output_path) is Status.SUCCESS


def _of_output(region: Region, files: Listing, here: Listing) -> dict[str, Choice]:
    """A complete output of another region: all its data, from there, unless a file was written here."""
    found = {}
    for name, stored in files.items():
        origin = Origin(path=stored.path, generation=stored.generation)
        local = here.get(name)
        if not is_control(name) and (local is None or local.origin not in (None, origin)):
            replaces = local.generation if local else None
            found[name] = Choice(region=region, stored=stored, origin=origin, replaces=replaces)
    return found


def _of_union(relative: str, regions: Regions, listings: Mapping[Region, Listing]) -> dict[str, Choice]:
    """What any region has, file by file; nothing within an output that is made here."""
    look = _look_in(relative, listings)
    outputs = {name.rpartition("/")[0] + "/" for name in listings[regions.local] if name.endswith("/" + STATUS)}
    names = {name for files in listings.values() for name in files if not is_control(name)}
    wanted = (name for name in sorted(names) if not any(name.startswith(output) for output in outputs))
    chosen = {name: choose(_below(relative, name), regions, look) for name in wanted}
    return {name: choice for name, choice in chosen.items() if choice and choice.region != regions.local}


def _look_in(relative: str, listings: Mapping[Region, Listing]) -> Callable[[Region, str], Stored | None]:
    """Answer from listings that were taken already, so that a tree costs no request for each of its files."""

    def look(region: Region, path: str) -> Stored | None:
        if region not in listings:
            return None
        if path == relative or path.startswith(relative + "/") or not relative:
            return listings[region].get(path[len(relative) :].strip("/"))
        return look_up(region, path)

    return look


def _below(relative: str, name: str) -> str:
    return "/".join(part for part in (relative, name) if part)
