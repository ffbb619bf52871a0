"""The mirror as an fsspec filesystem: `mirror://relative/path`.

Reading prefers the local region, else the cheapest region that has the file: the file is copied once into the local
region and read there. A part of less than a twentieth of the file is read remotely. Listings are the union of all
regions, where the local region wins; they copy nothing and are free. Only the local region is written to.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.mirror.choose import Choice, choose, not_found
from marin_resources.storage.mirror.disk import DiskStore, note_path, read_notes
from marin_resources.storage.mirror.fetch import fetch, read_part
from marin_resources.storage.mirror.file import MIN_READ_BYTES, MirrorFile, part_limit_bytes
from marin_resources.storage.mirror.protocol import GENERATION, PROTOCOL, is_control, is_own
from marin_resources.storage.mirror.relative import relative_of
from marin_resources.storage.paths import is_local
from marin_resources.storage.transfer.regions import Region, Regions, declared_regions

_Info = dict[str, Any]


class MirrorFileSystem(AbstractFileSystem):
    """Stateless, so threads may share it: the environment declares the regions."""

    protocol = PROTOCOL
    root_marker = ""

    # Listings: of all regions, nothing is copied.

    def info(self, path: str, **kwargs: Any) -> _Info:
        """The info from the local region, else from the cheapest region that has the path. Raises FileNotFoundError."""
        regions, relative = self._placed(path)
        for region in regions.all:
            fs, place = filesystem_of(region.place(relative))
            try:
                return _mirrored(fs.info(place), relative, region)
            except FileNotFoundError:
                continue
        raise not_found(relative, regions)

    def exists(self, path: str, **kwargs: Any) -> bool:
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        return self._type(path) == "directory"

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        regions, relative = self._placed(path)
        entries = _joined(_in_all_regions(regions, lambda region: _list(region, relative)))
        if entries is None:
            raise not_found(relative, regions)
        return [entries[name] for name in sorted(entries)] if detail else sorted(entries)

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **kwargs: Any
    ) -> Any:
        if maxdepth is not None:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **kwargs)
        regions, relative = self._placed(path)
        entries = _joined(_in_all_regions(regions, lambda region: _find(region, relative))) or {}
        if withdirs:
            entries = {**_folders_of(entries, relative), **entries}
        return dict(sorted(entries.items())) if detail else sorted(entries)

    def created(self, path: str) -> Any:
        return self._info_of_time(path, "created")

    def modified(self, path: str) -> Any:
        return self._info_of_time(path, "modified")

    # Reading: a file that the local region lacks is copied, unless only a small part is read.

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **kwargs: Any) -> Any:
        regions, relative = self._placed(path)
        options = {**kwargs, **({} if block_size in (None, "default") else {"block_size": block_size})}
        if mode != "rb":
            return self._open_to_write(regions.local.place(relative), mode, options)
        choice = self._chosen(relative, regions)
        if choice.region != regions.local:
            if is_control(relative):
                return io.BytesIO(read_part(choice, relative, regions, 0, choice.stored.size_bytes))
            if part_limit_bytes(choice.stored.size_bytes) >= MIN_READ_BYTES:
                return MirrorFile(self, relative, choice, regions)
        fs, place = filesystem_of(self._here(choice, relative, regions))
        return fs.open(place, mode, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        regions, relative = self._placed(path)
        choice = self._chosen(relative, regions)
        if choice.region != regions.local:
            first, last, _ = slice(start, end).indices(choice.stored.size_bytes)
            if is_control(relative) or last - first < part_limit_bytes(choice.stored.size_bytes):
                return read_part(choice, relative, regions, first, max(first, last))
        fs, place = filesystem_of(self._here(choice, relative, regions))
        return fs.cat_file(place, start=start, end=end, **kwargs)

    def get_file(self, rpath: str, lpath: Any, callback: Any = None, outfile: Any = None, **kwargs: Any) -> None:
        if self.isdir(rpath):
            return super().get_file(rpath, lpath, outfile=outfile, **kwargs)
        regions, relative = self._placed(rpath)
        choice = self._chosen(relative, regions)
        if is_control(relative) and choice.region != regions.local:
            return super().get_file(rpath, lpath, outfile=outfile, **kwargs)
        fs, place = filesystem_of(self._here(choice, relative, regions))
        return fs.get_file(place, lpath if outfile is None else outfile, **kwargs)

    # Writing: in the local region alone.

    def _open_to_write(self, target: str, mode: str, options: dict[str, Any]) -> Any:
        fs, place = filesystem_of(target)
        if is_local(target):
            fs.makedirs(fs._parent(place), exist_ok=True)
        return fs.open(place, mode, **options)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        fs, place = self._local(path)
        fs.mkdir(place, create_parents=create_parents, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        fs, place = self._local(path)
        fs.makedirs(place, exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        fs, place = self._local(path)
        fs.rmdir(place)

    def rm_file(self, path: str) -> None:
        fs, place = self._local(path)
        fs.rm_file(place)
        if is_local(place) and read_notes(place):
            fs.rm_file(note_path(place))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for target in path if isinstance(path, list) else [path]:
            fs, place = self._local(target)
            if recursive and fs.isdir(place):
                fs.rm(place, recursive=True, maxdepth=maxdepth)
            else:
                self.rm_file(target)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            while chunk := source.read(self.blocksize):
                target.write(chunk)

    # Shared by the methods above.

    def _placed(self, path: str) -> tuple[Regions, str]:
        regions = declared_regions()
        return regions, relative_of(self._strip_protocol(path), regions)

    def _local(self, path: str) -> tuple[AbstractFileSystem, str]:
        regions, relative = self._placed(path)
        return filesystem_of(regions.local.place(relative))

    def _type(self, path: str) -> str | None:
        """None if nothing exists. A region that cannot be read raises its error."""
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None

    def _chosen(self, relative: str, regions: Regions) -> Choice:
        choice = choose(relative, regions)
        if choice is None:
            raise not_found(relative, regions)
        return choice

    def _here(self, choice: Choice, relative: str, regions: Regions) -> str:
        return choice.stored.path if choice.region == regions.local else fetch(relative, regions).path

    def _info_of_time(self, path: str, which: str) -> Any:
        regions, relative = self._placed(path)
        region = next(r for r in regions.all if r.name == self.info(path)["region"])
        fs, place = filesystem_of(region.place(relative))
        return getattr(fs, which)(place)


@lru_cache(maxsize=1)
def mirror_filesystem() -> MirrorFileSystem:
    """The instance of this process, registered with fsspec as "mirror"."""
    register()
    return MirrorFileSystem()


def register() -> None:
    """Register this filesystem with fsspec as "mirror", in this process.

    Levanter's libraries register another filesystem under the same name when they are imported, and that import fails
    if the name is taken already. So they are imported first, where they are installed.
    """
    if find_spec("rigging") is not None:
        import rigging.filesystem  # noqa: F401
    fsspec.register_implementation(PROTOCOL, MirrorFileSystem, clobber=True)


def _in_all_regions(regions: Regions, look: Any) -> list[dict[str, _Info] | None]:
    with ThreadPoolExecutor(len(regions.all)) as pool:
        return list(pool.map(look, regions.all))


def _list(region: Region, relative: str) -> dict[str, _Info] | None:
    """The entries directly below `relative`; None if the region has nothing there."""
    fs, place = filesystem_of(region.place(relative))
    try:
        entries = fs.ls(place, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    infos = dict(_named(entries, region, relative))
    return infos or ({} if is_local(region.prefix) else None)


def _find(region: Region, relative: str) -> dict[str, _Info] | None:
    fs, place = filesystem_of(region.place(relative))
    try:
        return dict(_named(fs.find(place, detail=True).values(), region, relative))
    except FileNotFoundError:
        return None


def _named(entries: Any, region: Region, relative: str) -> Iterator[tuple[str, _Info]]:
    """(path in the mirror, info), without the mirror's own files and objects that represent a folder."""
    root = filesystem_of(region.prefix)[1].rstrip("/")
    for info in map(_resolved, entries):
        name = info["name"][len(root) :].strip("/")
        folder_itself = name == relative and info["type"] == "directory"
        if not folder_itself and not is_own(name) and not (info["type"] == "file" and info["name"].endswith("/")):
            yield name, _mirrored(info, name, region)


def _resolved(info: _Info) -> _Info:
    """The info of the file behind a symlink, which a listing of a disk describes as neither a file nor a folder."""
    if not info.get("islink"):
        return info
    fs, place = filesystem_of(info["name"])
    return fs.info(place) if fs.isfile(place) else info


def _mirrored(info: _Info, relative: str, region: Region) -> _Info:
    """The store's info with the origin's generation for a copy, so that copying a file does not change its info."""
    mirrored = {**info, "name": relative, "region": region.name}
    if info["type"] != "file":
        return mirrored
    if is_local(region.prefix):
        stored = DiskStore().find(info["name"])
        generation: Any = (stored.origin.generation if stored.origin else stored.generation) if stored else ""
    else:
        generation = (info.get("metadata") or {}).get(GENERATION, info["generation"])
    return {**mirrored, "generation": generation}


# However this module is first imported, fsspec's "mirror" is this filesystem from then on.
register()


def _joined(listings: Iterable[Mapping[str, _Info] | None]) -> dict[str, _Info] | None:
    """Path -> info from the first region that has it; None if no region has the listed folder."""
    infos: dict[str, _Info] | None = None
    for listing in listings:
        if listing is not None:
            infos = {**listing, **(infos or {})}
    return infos


def _folders_of(infos: Mapping[str, _Info], relative: str) -> dict[str, _Info]:
    """The folders between `relative` and the files below it."""
    names: set[str] = set()
    for name in infos:
        while (name := name.rpartition("/")[0]) and len(name) > len(relative):
            names.add(name)
    return {name: {"name": name, "size": 0, "type": "directory"} for name in sorted(names)}
