"""Conditions of a request: `ifGenerationMatch` and its kin, and those of a copy's source (`ifSource…`)."""

from __future__ import annotations

from collections.abc import Mapping

from fake_gcs.objects import Bucket, StoredObject
from fake_gcs.refusals import condition_not_met, invalid, not_modified


def check(query: Mapping[str, str], live: StoredObject | None, prefix: str = "if") -> None:
    """Raise RefusalError if a condition does not hold: 412, or 304 for one that requires another generation.

    An object that does not exist has generation 0.
    """
    generations = {
        "Generation": live.generation if live else 0,
        "Metageneration": live.metageneration if live else 0,
    }
    for kind, number in generations.items():
        if _wanted(query, f"{prefix}{kind}Match") not in (None, number):
            raise condition_not_met()
        if _wanted(query, f"{prefix}{kind}NotMatch") == number:
            raise not_modified()


def check_bucket(query: Mapping[str, str], bucket: Bucket) -> None:
    if _wanted(query, "ifMetagenerationMatch") not in (None, bucket.metageneration):
        raise condition_not_met()
    if _wanted(query, "ifMetagenerationNotMatch") == bucket.metageneration:
        raise not_modified()


def of_request(query: Mapping[str, str]) -> dict[str, str]:
    """The conditions alone, to be checked later."""
    return {name: value for name, value in query.items() if name.startswith("if") and name.endswith("Match")}


def _wanted(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    try:
        return int(query[name])
    except ValueError:
        raise invalid(f"Invalid value for {name}: '{query[name]}'", location=name) from None
