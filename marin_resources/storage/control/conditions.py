"""Whether a store that speaks S3 obeys the conditions of a write. Some ignore them, and some proxies remove them.

A second writer would then replace the first one's control file, and an output would be published twice. So the first
claim in a prefix makes two writes that must be refused. Their result is noted in the prefix, for one endpoint.
"""

from __future__ import annotations

import json
import logging
import uuid
from functools import cache

from marin_resources.configuration.settings import SettingError
from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import ConflictError, UnavailableError
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, join, kind_of

NOTE = ".marin/conditional-writes.json"
"""Path below the prefix."""
REFUSED = {"If-None-Match": None, "If-Match": '"00000000000000000000000000000000"'}
"""Header -> the generation that a writer expects. The object exists with another one, so both writes must fail."""

log = logging.getLogger(__name__)


@cache
def require_conditions(prefix: str) -> None:
    """Raise SettingError if the store of a prefix accepts a write whose condition does not hold.

    A store that answers "conflict" to both has them. GCS and a local disk have them always.
    """
    if kind_of(prefix) is not StoreKind.S3:
        return
    endpoint = filesystem_of(prefix)[0].connect().meta.endpoint_url
    if _noted_endpoint(prefix) == endpoint:
        return
    probe = join(prefix, f".marin/probe-{uuid.uuid4().hex}")
    try:
        control.put(probe, b"the first writer")
        ignored = [name for name, expected in REFUSED.items() if _accepts(probe, name, expected)]
    finally:
        _remove(probe)
    if ignored:
        raise SettingError(
            f"The store of {prefix!r} at {endpoint} ignores the condition of a write ({' and '.join(ignored)}), so two "
            "runs could publish one output. Use a store that has conditional writes, such as Amazon S3 or MinIO, and "
            "no proxy that removes these headers."
        )
    control.put(join(prefix, NOTE), json.dumps({"endpoint": endpoint}).encode())


def _accepts(probe: str, header: str, expected: str | None) -> bool:
    try:
        control.write(probe, f"a second writer, {header}".encode(), expected=expected)
    except ConflictError:
        return False
    return True


def _noted_endpoint(prefix: str) -> str | None:
    """The endpoint that has passed before. A damaged note is ignored, and the store is tested again."""
    snapshot = control.read(join(prefix, NOTE))
    try:
        return json.loads(snapshot.data)["endpoint"] if snapshot is not None else None
    except (ValueError, KeyError, TypeError):
        return None


def _remove(probe: str) -> None:
    try:
        snapshot = control.read(probe)
        if snapshot is not None:
            control.delete(probe, expected=snapshot.generation)
    except (ConflictError, UnavailableError) as error:
        log.warning("%r cannot be removed (%s). Remove it by hand.", probe, error)
