"""The drops of a place, and their files, as the store lists them now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from marin_resources.storage.files import StoredFile, names_in, read_bytes, stored_files
from marin_resources.storage.paths import join
from marin_sensors.drops.pattern import DropPattern
from marin_sensors.drops.seen import Seen


class Listing:
    """One look at a place. A folder of a drop is listed when it is looked at; drops that are files, all at once."""

    def __init__(self, pattern: DropPattern) -> None:
        self._pattern = pattern

    @cached_property
    def names(self) -> list[str]:
        """The drops, sorted. None if nothing exists there."""
        if not self._pattern.is_folder:
            return sorted(self._files)
        found = (self._pattern.drop_of_folder(name) for name in names_in(self._pattern.base))
        return sorted({name for name in found if name is not None and not name.startswith(".")})

    def look(self, drop: str) -> Seen | None:
        """The drop as it is now; None if it has no file."""
        if not self._pattern.is_folder:
            files = self._files.get(drop)
            return _seen(drop, files, lambda name: True) if files else None
        folder = self._pattern.folder_of(drop)
        try:
            files = stored_files(folder)
        except FileNotFoundError:
            return None
        if [file.path for file in files] == [folder]:
            return None  # a file beside the folders of drops
        first = folder.rstrip("/").rpartition("/")[2]
        wanted = lambda name: self._pattern.drop_of_file(f"{first}/{name}") == drop  # noqa: E731
        return _seen(drop, files, wanted) if files else None

    def reader(self, drop: str) -> Callable[[str], bytes]:
        """Reads a file in the folder of a drop."""
        folder = self._pattern.folder_of(drop) if self._pattern.is_folder else self._pattern.base
        return lambda name: read_bytes(join(folder, name))

    @cached_property
    def _files(self) -> dict[str, list[StoredFile]]:
        try:
            files = stored_files(self._pattern.base)
        except FileNotFoundError:
            return {}
        found: dict[str, list[StoredFile]] = {}
        for file in files:
            if (drop := self._pattern.drop_of_file(file.name)) is not None:
                found.setdefault(drop, []).append(file)
        return found


def _seen(drop: str, files: Iterable[StoredFile], wanted: Callable[[str], bool]) -> Seen:
    files = list(files)
    chosen = {file.name: file for file in files if wanted(file.name)}
    return Seen(
        name=drop,
        stamps={name: f"{file.size_bytes} {file.stamp}" for name, file in chosen.items()},
        bytes=sum(file.size_bytes for file in chosen.values()),
        beside=frozenset(file.name for file in files if file.name not in chosen),
    )
