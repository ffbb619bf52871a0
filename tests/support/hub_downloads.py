"""Downloads from the hub on loopback, for the tests of `marin_assets/stages/download/hub/`.

`python hub_downloads.py CONFIG`: download in a process of its own; the config's fields are JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from marin_assets.stages.download.hub.download_hf import DownloadHfConfig, download_hf
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import list_files

NAME = "lab/texts"
FILES = {
    "README.md": b"# Texts\n",
    "data/a.bin": bytes(range(256)) * 1200,
    "data/b.bin": b"b" * 50_000,
    "data/sub/c.txt": "ünï".encode(),
    "empty.bin": b"",
    "odd names/50% #1 é+&.bin": b"odd" * 1000,
}


def config(output: Path | str, **fields: Any) -> DownloadHfConfig:
    given = DownloadHfConfig(**{"dataset": NAME, "output_path": str(output), "range_bytes": 65536, **fields})
    return unwrap_versioned_value(given)


def download(output: Path | str, **fields: Any) -> dict[str, Any]:
    return download_hf(config(output, **fields))


def files_of(output: Path | str) -> dict[str, bytes]:
    """The files of an output, without checksums.json."""
    names = {str(Path(path).relative_to(output)): Path(path).read_bytes() for path in list_files(str(output))}
    names.pop("checksums.json", None)
    return names


if __name__ == "__main__":
    print(json.dumps(download(**json.loads(sys.argv[1]))))
