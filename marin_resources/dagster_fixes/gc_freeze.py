"""Freeze the startup objects of a process (`gc.freeze`), so that the memory of Dagster's daemon stays flat.

Python collects its oldest garbage when the objects that came since then are a quarter of all objects. A daemon loads
700,000, nearly all of them parts of modules, so that happens every half an hour, and 5 MB of garbage wait for it.
Objects that are frozen do not count and are not visited: the collections are frequent, and cheap. Each process that
opens an instance freezes its own; a run, too, is spared the visits.

Seen with Dagster 1.13.27: dagster-io/dagster#32070. Without this, the memory of the daemon grows in steps.
"""

from __future__ import annotations

import gc

_frozen = False


def freeze_startup_objects() -> None:
    """Freeze the objects of this process, once. Call it when its modules are loaded."""
    global _frozen
    if _frozen:
        return
    _frozen = True
    gc.freeze()
    gc.collect()  # visits next to nothing, and makes Python count from zero
