"""`python slow_download.py CONFIG`: `download_files` in a process of its own, in small blocks with a pause after each,
so that it can be killed in the middle. CONFIG is JSON: `source`, `output_path`, `nap_s`, and fields of StoreAccess."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from marin_assets.stages.download.files import DownloadFilesConfig, download_files
from marin_assets.stages.download.stores import gcs, other, s3
from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.web import answers
from marin_assets.stages.download.web.tally import Tally
from marin_assets.step.values import unwrap_versioned_value

BLOCK_BYTES = 32 * 1024


def parts_of(output: Path) -> int:
    """The bytes of all parts of an output on a disk."""
    return sum(part.stat().st_size for part in (output / ".download/parts").glob("*/*"))


def download(source: str, output_path: str, **access: Any) -> dict[str, Any]:
    config = DownloadFilesConfig(source=source, output_path=output_path, access=StoreAccess(**access))
    return download_files(unwrap_versioned_value(config))


def _slow_down(nap_s: float) -> None:
    for module in (answers, other, s3):
        module.BLOCK_BYTES = BLOCK_BYTES  # type: ignore[attr-defined]
    gcs.PIECE_BYTES = BLOCK_BYTES
    fetched = Tally.fetched

    def slowly(tally: Tally, size_bytes: int) -> None:
        fetched(tally, size_bytes)
        time.sleep(nap_s)

    Tally.fetched = slowly  # type: ignore[method-assign]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    _slow_down(given.pop("nap_s"))
    print(json.dumps(download(**given)))
