"""The record of an output as JSON, as tests compare it."""

from __future__ import annotations

from typing import Any

from marin_resources.storage.output.record import read_record


def fields_of_record(output_path: str) -> dict[str, Any] | None:
    """Every field of the record at this path; None if there is no record."""
    found = read_record(output_path)
    return None if found is None else found.to_dict()
