"""Take what a daemon loads at its start out of Python's garbage collection, so that its memory is flat.

Python collects its oldest garbage when the objects that came since then are a quarter of all objects. A daemon loads
700,000, nearly all of them parts of modules, so that happens every half an hour, and 5 MB of garbage wait for it.
Objects that are frozen do not count and are not visited: the collections are frequent, and cheap.

Seen with Dagster 1.13.27: dagster-io/dagster#32070. Without this, the memory of the daemon grows in steps.
"""

from __future__ import annotations

import gc
import sys

_frozen = False


def freeze_startup_objects() -> None:
    """Freeze the objects of this process, once, if it is Dagster's daemon. Call it when its modules are loaded."""
    global _frozen
    if _frozen or "dagster._daemon.daemon" not in sys.modules:
        return
    _frozen = True
    gc.freeze()
    gc.collect()  # visits next to nothing, and makes Python count anew
