"""Buckets of another region that a config names by a gs:// URL: refused, unless they are allowed by name.

    MARIN_FOREIGN_BUCKETS   commoncrawl,their-data     names of buckets that may be read from any region

A plain gs:// path is read where it is, again each time, and Google charges for what leaves its region.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.paths import StoreKind, kind_of, without_scheme
from marin_resources.storage.transfer.locations import BucketUnreadableError, is_in, location_of

VARIABLE = "MARIN_FOREIGN_BUCKETS"
SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A bucket in another region."""

    path: str
    bucket: str
    location: str | None
    """As Google has it: "us-east1", "eu"; None if it cannot be read."""
    why: str = ""
    """Reason why the location cannot be read."""

    def describe(self) -> str:
        """A phrase: "'gs://x/raw', which is in us-east1"."""
        phrase = f"which is in {self.location}"
        return f"{self.path!r}, {phrase if self.location else f'whose region cannot be read ({self.why})'}"


def foreign_to(region: str, paths: Iterable[str]) -> list[Foreign]:
    """The gs:// paths whose buckets are not in the region, and not allowed by name. One request for a bucket, once.

    Raises SettingError.
    """
    allowed = allowed_buckets()
    foreign = []
    for path in paths:
        bucket = without_scheme(path).partition("/")[0]
        if kind_of(path) is not StoreKind.GCS or bucket in allowed:
            continue
        try:
            location, why = location_of(bucket), ""
        except BucketUnreadableError as error:
            location, why = None, str(error)
        if location is None or not is_in(region, location):
            foreign.append(Foreign(path=path, bucket=bucket, location=location, why=why))
    return foreign


def refusal(step: str, where: str, foreign: Sequence[Foreign]) -> str:
    """The sentence that refuses a step which would run at `where`."""
    listed = ", ".join(entry.describe() for entry in foreign[:SHOWN])
    more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
    buckets = ",".join(dict.fromkeys(entry.bucket for entry in foreign))
    return (
        f"Step {step!r} would run on {where} and its config has {listed}{more}. Give a path below the prefix, which "
        "comes through the mirror on the step's budget, run it where the bucket is, or allow the bucket by name: "
        f"{VARIABLE}={buckets}."
    )


def allowed_buckets() -> frozenset[str]:
    """The buckets of MARIN_FOREIGN_BUCKETS. Raises SettingError for what is no name of a bucket."""
    given = os.environ.get(VARIABLE, "")
    names = [name.strip().removeprefix("gs://").rstrip("/") for name in given.split(",") if name.strip()]
    for name in names:
        if "/" in name or ":" in name:
            raise SettingError(
                f"{VARIABLE} is {given!r}, and {name!r} in it is no bucket. Write names of buckets between commas: "
                "commoncrawl,their-data."
            )
    return frozenset(names)
