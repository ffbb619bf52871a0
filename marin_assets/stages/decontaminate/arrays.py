"""numpy arrays as files, and the digest of a small file."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

from marin_resources.storage.files import read_bytes, write_bytes

if TYPE_CHECKING:
    import numpy as np


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a small file, in hex."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def save_array(path: str, array: np.ndarray) -> None:
    import numpy as np  # 0.1 s to import

    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    write_bytes(path, out.getvalue())


def load_array(path: str) -> np.ndarray:
    import numpy as np

    return np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
