"""Write a page of HTML into the folder of `--output`."""

from __future__ import annotations

import os

from marin_assets.run.options import FailedError, OptionError
from marin_resources.storage.files import write_bytes
from marin_resources.storage.paths import is_local, join


def output_folder(output: str, command: str) -> str:
    """The folder of the page. Raises OptionError if it is a file."""
    if not is_local(output):
        return output
    if os.path.exists(output) and not os.path.isdir(output):
        raise OptionError(f"{command}: --output is {output!r}, which is a file. Expected a folder.")
    return output.rstrip("/") or "/"


def write_page(folder: str, name: str, html: bytes) -> str:
    """Write the page, and return its path. Raises FailedError if that is refused."""
    file = join(folder, name)
    try:
        write_bytes(file, html)
    except OSError as error:
        raise FailedError(
            f"The page cannot be written to {file!r}: {error.strerror or error}. Pass another folder with --output DIR."
        ) from error
    return file
