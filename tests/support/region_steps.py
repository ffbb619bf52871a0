"""Steps for tests of several regions: they read and write through fsspec, and note in which region they were called."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH, versioned
from marin_resources.storage.files import list_files, read_bytes, write_bytes
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class RegionConfig:
    text: str = versioned("")
    """Written in place of what is read, if there is any."""
    input_paths: list[str] = field(default_factory=list)
    calls: str = ""
    """A local file, which gets a line for each call."""
    gate: str = ""
    """A file whose absence lets the function end."""
    output_path: str = THIS_OUTPUT_PATH


def join_texts(config: RegionConfig) -> dict[str, int]:
    """Write all that is read into one file, with the text at its end."""
    call = {
        "output": config.output_path,
        "inputs": config.input_paths,
        "region": os.environ.get("MARIN_REGION", ""),
    }
    with Path(config.calls).open("a") as file:
        file.write(json.dumps(call) + "\n")
    print("at the gate", flush=True)
    while config.gate and os.path.exists(config.gate):
        time.sleep(0.02)
    read = b"".join(read_bytes(path) for folder in config.input_paths for path in list_files(folder, ".txt"))
    write_bytes(join(config.output_path, "text.txt"), read + config.text.encode())
    return {"bytes": len(read)}
