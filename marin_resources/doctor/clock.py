"""Clocks: this machine's against the store's and the cluster's.

Leases and sensors need no common clock. Records, logs and ages do, and so do credentials: Google refuses a request
that is signed more than 5 minutes off, Amazon one of more than 15.
"""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial

from marin_resources.configuration.settings import SettingError, default_prefix
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.doctor.store import require_store
from marin_resources.ray_tpu.cluster.settings_from_env import each_from_env
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.filesystems.rights import why_unwritable
from marin_resources.storage.paths import StoreKind, absolute, join, kind_of

SUBJECT = "clocks"
MAX_SKEW_S = 60.0
HTTP_TIMEOUT_S = 5.0
RESOLUTION_S = 1.0
"""Resolution of the time in the header of an HTTP response."""


def look() -> Iterator[Finding]:
    prefix = default_prefix()
    yield from _compared("the store", lambda: _store_time_s(prefix))
    for cluster in each_from_env():
        yield from _compared("the cluster", partial(_http_time_s, cluster.address))


def assess(owner: str, skew_s: float) -> Finding:
    """The finding for `skew_s`, by which this machine's clock is ahead of another's; below 0: behind."""
    if abs(skew_s) <= MAX_SKEW_S:
        return ok(SUBJECT, f"{owner}'s differs from this machine's by less than {max(RESOLUTION_S, abs(skew_s)):.0f} s")
    direction = "ahead of" if skew_s > 0 else "behind"
    return wrong(
        SUBJECT,
        f"This machine's clock is {abs(skew_s):.0f} s {direction} that of {owner}: times in records and logs are "
        "wrong, and credentials are refused. Switch on its time synchronization (timedatectl set-ntp true).",
    )


def _compared(owner: str, its_time_s: Callable[[], float | None]) -> Iterator[Finding]:
    try:
        began_s = time.time()
        theirs_s = its_time_s()
        ours_s = (began_s + time.time()) / 2
    except (SettingError, UnavailableError):
        raise  # as of the prefix
    except (OSError, ValueError) as error:
        why = str(getattr(error, "reason", None) or error)
        yield warning(SUBJECT, f"That of {owner} is not known ({why}). Look again when {owner} answers.")
        return
    if theirs_s is not None:
        yield assess(owner, ours_s - theirs_s)


def _store_time_s(prefix: str) -> float | None:
    """The store's time, in seconds since 1970; None for a folder that does not exist yet or cannot be written."""
    kind = kind_of(prefix)
    if kind is StoreKind.DISK:
        return _time_of_disk_s(absolute(prefix))
    if kind not in (StoreKind.GCS, StoreKind.S3):  # the look at the prefix reports that it cannot be used
        return None
    require_store(prefix)
    fs, place = filesystem_of(prefix)
    bucket = place.partition("/")[0]
    if kind is StoreKind.GCS:
        headers, _ = fs.call("GET", "b/{}/o", bucket, maxResults=1)
        return _parsed(headers["Date"])
    answer = fs.call_s3("list_objects_v2", Bucket=bucket, MaxKeys=1)
    return _parsed(answer["ResponseMetadata"]["HTTPHeaders"]["date"])


def _time_of_disk_s(folder: str) -> float | None:
    """A network disk stamps files by its own server's clock."""
    if not os.path.isdir(folder) or why_unwritable(folder):
        return None
    probe = join(folder, f".marin-doctor-{uuid.uuid4().hex}")
    with open(probe, "xb"):
        stamped_s = os.stat(probe).st_mtime
    os.unlink(probe)
    return stamped_s


def _http_time_s(address: str) -> float:
    """The time of an HTTP server, in seconds since 1970. Any answer has it, also a refusal."""
    try:
        with urllib.request.urlopen(f"{address}/api/version", timeout=HTTP_TIMEOUT_S) as answer:
            return _parsed(answer.headers["Date"])
    except urllib.error.HTTPError as error:
        return _parsed(error.headers["Date"])


def _parsed(text: str) -> float:
    """The middle of the second that the header names."""
    return parsedate_to_datetime(text).timestamp() + RESOLUTION_S / 2
