"""`mirror://relative/path`: a file or folder of any region that has it, copied once into the local prefix.

May import every other package of `storage`; no other package imports it (fsspec's registry finds it by name).

fsspec.open("mirror://raw/x/part-0.jsonl.zst")   like any other path: open, cat, ls, glob, pyarrow, pandas
local_path_of("mirror://raw/x")                  a plain path for readers without fsspec: TensorStore, Levanter
copy_record("mirror://raw/x/.executor_info")     the record of an output, beside the copy of its data
register()                                       makes fsspec use this filesystem for "mirror" in this process
"""

from __future__ import annotations

from marin_resources.storage.mirror.filesystem import MirrorFileSystem, mirror_filesystem, register
from marin_resources.storage.mirror.protocol import ChangedError, MirrorError
from marin_resources.storage.mirror.tree import copy_record, local_path_of

__all__ = [
    "ChangedError",
    "MirrorError",
    "MirrorFileSystem",
    "copy_record",
    "local_path_of",
    "mirror_filesystem",
    "register",
]
