"""The deliveries of a place, and their files, as the store lists them now."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from marin_resources.storage.files import StoredFile, names_in, stored_and_unusable_files
from marin_resources.storage.filesystems.disk_listing import SpecialFileError, require_target
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import absolute, is_local
from marin_sensors.deliveries.delivery_listing import DeliveryListing
from marin_sensors.deliveries.pattern import DeliveryPattern


class Listing:
    """One look at a place. The folder of a delivery is listed in its turn; deliveries that are files, all at once."""

    def __init__(self, pattern: DeliveryPattern) -> None:
        self._pattern = pattern

    @cached_property
    def names(self) -> list[str]:
        """The deliveries, sorted. None if nothing exists there."""
        if not self._pattern.is_folder:
            files, unusable = self._files
            return sorted({*files, *unusable})
        deliveries = (self._pattern.delivery_of_folder(name) for name in names_in(self._pattern.base))
        return sorted({name for name in deliveries if name is not None and not name.startswith(".")})

    def absent(self) -> str:
        """Why the place cannot have deliveries, as a phrase; empty if it is a folder, or a bucket that exists."""
        base = self._pattern.base
        if is_local(base):
            place = absolute(base)
            return "" if os.path.isdir(place) else f"{place!r} is {'no folder' * os.path.exists(place) or 'not there'}"
        fs, root = filesystem_of(base)
        try:
            fs.ls(root, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return f"nothing is at {base!r}"
        return ""

    def look(self, delivery: str) -> DeliveryListing | None:
        """The delivery as it is now; None if it has no file."""
        if not self._pattern.is_folder:
            files, unusable = self._files
            return _seen(delivery, files.get(delivery, ()), unusable.get(delivery, {}), lambda name: True)
        folder = self._pattern.folder_of(delivery)
        try:
            stored, errors = stored_and_unusable_files(folder)
        except FileNotFoundError:
            return _dangling(delivery, folder)
        except SpecialFileError:
            return None  # as a file beside the folders of deliveries
        except PermissionError as error:
            return DeliveryListing(
                name=delivery, stamps={}, bytes=0, unusable=f"it cannot be listed ({error.strerror})"
            )
        if [file.path for file in stored] == [folder]:
            return None  # a file beside the folders of deliveries
        first = folder.rstrip("/").rpartition("/")[2]
        matches = lambda name: self._pattern.delivery_of_file(f"{first}/{name}") == delivery  # noqa: E731
        holding = {name: error for name, error in errors.items() if self._holds(error, is_wanted=matches(name))}
        return _seen(delivery, stored, holding, matches)

    def _holds(self, error: OSError, *, is_wanted: bool) -> bool:
        """Whether what cannot be read is wanted, or may be a folder with files that are."""
        return is_wanted or (self._pattern.is_deep and not isinstance(error, SpecialFileError))

    def folder_of(self, delivery: str) -> str:
        """The folder that the names of a delivery's files are relative to."""
        return self._pattern.folder_of(delivery) if self._pattern.is_folder else self._pattern.base

    @cached_property
    def _files(self) -> tuple[dict[str, list[StoredFile]], dict[str, dict[str, OSError]]]:
        """Delivery -> its files, and delivery -> errors of what cannot be read, where a delivery is files."""
        try:
            stored, errors = stored_and_unusable_files(self._pattern.base)
        except FileNotFoundError:
            return {}, {}
        files: dict[str, list[StoredFile]] = {}
        unusable: dict[str, dict[str, OSError]] = {}
        for file in stored:
            if (delivery := self._pattern.delivery_of_file(file.name)) is not None:
                files.setdefault(delivery, []).append(file)
        for name, error in errors.items():
            if (delivery := self._pattern.delivery_of_file(name)) is not None:
                unusable.setdefault(delivery, {})[name] = error
        return files, unusable


def _seen(
    delivery: str, files: Iterable[StoredFile], unusable: Mapping[str, OSError], matches: Callable[[str], bool]
) -> DeliveryListing | None:
    """The delivery with these files; None if it has neither a file nor what cannot be read."""
    chosen: dict[str, StoredFile] = {}
    beside: dict[str, StoredFile] = {}
    for file in files:
        (chosen if matches(file.name) else beside)[file.name] = file
    if not chosen and not beside and not unusable:
        return None
    return DeliveryListing(
        name=delivery,
        stamps=_stamps(chosen),
        bytes=sum(file.size_bytes for file in chosen.values()),
        beside=_stamps(beside),
        unusable=_why(unusable),
    )


def _stamps(files: Mapping[str, StoredFile]) -> dict[str, str]:
    return {name: f"{file.size_bytes} {file.stamp}" for name, file in files.items()}


def _dangling(delivery: str, folder: str) -> DeliveryListing | None:
    """A delivery that is a symlink to nothing; None for another one that does not exist."""
    try:
        if is_local(folder):
            require_target(absolute(folder))
    except FileNotFoundError as error:
        return DeliveryListing(name=delivery, stamps={}, bytes=0, unusable=_why({"": error}))
    return None


def _why(unusable: Mapping[str, OSError]) -> str:
    """The first of what cannot be read, as a phrase; empty for none."""
    for name, error in unusable.items():
        why = f"{name!r} cannot be read ({error.strerror})" if error.strerror else str(error).rstrip(".")
        return f"{why} ({len(unusable) - 1} more)" if len(unusable) > 1 else why
    return ""
