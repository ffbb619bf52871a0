"""Late writes: data files that an earlier attempt wrote after a newer one had claimed the output.

Every upload of an attempt carries its number and owner (`upload/writer.py`). What an earlier attempt had written before
the claim was moved aside, or is resumed from: its generations are listed in the claim. Anything else of an earlier
attempt was late, and may have replaced a file of the newer one.
"""

from __future__ import annotations

from collections.abc import Mapping

from marin_resources.storage.manifest.manifest import is_data
from marin_resources.storage.output.attempts import read_attempt
from marin_resources.storage.upload.stamps import Stamped, stamped_below
from marin_resources.storage.upload.writer import Writer

SHOWN = 3
"""Names in the sentence."""


class LateWriteError(RuntimeError):
    """An earlier attempt has written into this one's data: one sentence with the files. Nothing is published."""


def require_no_late_writes(output_path: str, data_path: str, writer: Writer, kept: Mapping[str, str]) -> None:
    """Raise LateWriteError if the data holds late writes of earlier attempts. Call it after the manifest is taken.

    `kept` has name and generation of each file of earlier attempts from which this one resumes. A write that lands
    after this call is not in the manifest, so `marin verify` finds it.
    """
    if writer.attempt == 1 and writer.number == 1:
        return
    foreign = [
        file
        for file in stamped_below(data_path, is_data)
        if file.writer != writer and kept.get(file.name) != file.generation and _is_of(output_path, file)
    ]
    if foreign:
        names = ", ".join(repr(file.name) for file in foreign[:SHOWN])
        more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        late = sorted({_called(file.writer) for file in foreign})
        raise LateWriteError(
            f"{', '.join(late)} at {data_path!r}, which was taken for dead, wrote {names}{more} "
            f"after {_called(writer)} had begun, so nothing is published"
        )


def _called(writer: Writer) -> str:
    number = f", try {writer.number}" if writer.number > 1 else ""
    return f"attempt {writer.attempt}{number}"


def _is_of(output_path: str, file: Stamped) -> bool:
    """Whether the writer is an attempt at this output. An object copied from elsewhere keeps its metadata."""
    try:
        return read_attempt(output_path, file.writer.attempt).get("owner") == file.writer.owner
    except FileNotFoundError:
        return False
