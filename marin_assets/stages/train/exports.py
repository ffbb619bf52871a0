"""The exports of a model while it is trained, for evaluation: `<output>/exports/step-0000100`, a Hugging Face folder.

The number is that of the checkpoint, with seven digits, so that the names sort by step. An export is complete once it
has _SUCCESS, which is written last. A complete export is never written again: what was evaluated stays as it was.
"""

from __future__ import annotations

import logging

from marin_resources.storage.files import exists, names_in, remove_folder, write_bytes
from marin_resources.storage.paths import join

FOLDER = "exports"
COMPLETE = "_SUCCESS"
DIGITS = 7

log = logging.getLogger(__name__)


def export_path(output_path: str, step: int) -> str:
    """Return the folder of the export after step `step`, which counts from 0."""
    return join(output_path, FOLDER, f"step-{step:0{DIGITS}}")


def is_complete(path: str) -> bool:
    return exists(join(path, COMPLETE))


def mark_complete(path: str) -> None:
    write_bytes(join(path, COMPLETE), b"")


def remove_unfinished_exports(output_path: str) -> list[str]:
    """Remove the exports that a killed run has not completed. Returns their names, sorted."""
    folder = join(output_path, FOLDER)
    removed = [name for name in sorted(names_in(folder)) if not is_complete(join(folder, name))]
    for name in removed:
        log.info("removing the incomplete export %s", join(folder, name))
        remove_folder(join(folder, name))
    return removed
