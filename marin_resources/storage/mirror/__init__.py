"""`mirror://relative/path`: a file or folder of whichever region has it, copied once into the local prefix.

fsspec.open("mirror://raw/x/part-0.jsonl.zst")   like any other path: open, cat, ls, glob, pyarrow, pandas
local_path_of("mirror://raw/x")                  a plain path for readers that know no fsspec: TensorStore, Levanter
register()                                       so that fsspec takes "mirror" for ours in this process
"""

from __future__ import annotations

from marin_resources.storage.mirror.filesystem import MirrorFileSystem, mirror_filesystem, register
from marin_resources.storage.mirror.stored import ChangedError, MirrorError
from marin_resources.storage.mirror.tree import local_path_of

__all__ = ["ChangedError", "MirrorError", "MirrorFileSystem", "local_path_of", "mirror_filesystem", "register"]
