"""Freeze the code of a run when it begins: what its jobs run, and the digests of it that records hold.

An edit during the run changes neither. Shipped code is the package, whose bytes are kept; code of an image is compared
with the files of the working directory as they were at the beginning of the run.
"""

from __future__ import annotations

import threading

from marin_resources.drift import source_file
from marin_resources.ray_tpu.cluster.code.code import root_of
from marin_resources.ray_tpu.cluster.code.package import package_of, sources_below
from marin_resources.ray_tpu.cluster.settings import ClusterSettings, CodeMode


def freeze_code(settings: ClusterSettings) -> None:
    """Freeze the code that this process submits, at its first call. Blocks. Raise CodeError if it cannot be packed."""
    root = root_of(settings)
    with _FREEZING:
        if (root, settings.code) not in _FROZEN:
            sources = package_of(root).sources if settings.code is CodeMode.SHIP else sources_below(root)
            source_file.freeze(sources)
            _FROZEN.add((root, settings.code))


_FREEZING = threading.Lock()
_FROZEN: set[tuple[str, CodeMode]] = set()
