"""The files of one delivery, as a rule of completeness reads them: within the time of a tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from marin_resources.storage.paths import join
from marin_sensors.deliveries.checksums import Checksums, Wanted
from marin_sensors.deliveries.delivery_listing import DeliveryListing

WAIT_S = 4.0
"""Time that a tick waits for the checksums of one delivery; it has others."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    folder: str
    """The folder that the names of the files are relative to."""
    read_within: Callable[[str], bytes]
    """Reads a path, or raises ListingError."""
    computed: Checksums
    ends_s: float
    """When the tick ends, by the monotonic clock."""

    def read(self, name: str) -> bytes:
        return self.read_within(join(self.folder, name))

    def checksums(self, algorithms: Mapping[str, str], seen: DeliveryListing) -> Mapping[str, str | OSError]:
        stamps = {**seen.beside, **seen.stamps}
        files = {
            name: Wanted(
                path=join(self.folder, name),
                size_bytes=int(stamps[name].partition(" ")[0]),
                stamp=stamps[name],
                algorithm=algorithm,
            )
            for name, algorithm in algorithms.items()
        }
        wait_s = min(WAIT_S, max(0.0, self.ends_s - time.monotonic()))
        checksums = self.computed.of(list(files.values()), wait_s)
        return {name: checksums[file] for name, file in files.items() if file in checksums}

    def forget(self, seen: DeliveryListing) -> None:
        """Forget the checksums: the delivery is taken."""
        self.computed.forget({join(self.folder, name) for name in (*seen.stamps, *seen.beside)})
