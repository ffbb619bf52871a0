"""Rights and limits at the store of a download. None of them enters a version: they do not change the content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, kind_of
from marin_resources.types.errors import InvalidInputError

if TYPE_CHECKING:
    import fsspec


class AccessError(InvalidInputError):
    """Rights or limits that cannot be used: one sentence."""


@dataclass(frozen=True, kw_only=True)
class StoreAccess:
    """Rights and limits at a source."""

    anonymous: bool = False
    """Send no credentials to S3 or GCS: for public buckets, on a machine with other credentials or none."""
    requester_pays: bool = False
    """Accept, of S3 or GCS, the costs of requests and transfer from a bucket whose owner does not pay them."""
    user_project: str = ""
    """The project of GCS that pays with requester_pays; "" for that of the credentials."""
    max_connections: int = 8
    """Limit of connections of a machine to a server of the web, for all its processes."""
    max_requests_per_s: float | None = None
    """Limit of requests to a server or a store, for all workers of the step together."""
    ranges_in_flight: int = 4
    """Ranges of one file that a worker fetches at a time."""
    range_bytes: int = 64 * 2**20


def require_usable(access: StoreAccess, *sources: Any) -> None:
    """Raise AccessError for values that contradict each other, or that the stores of the sources do not have."""
    for name in ("max_connections", "ranges_in_flight", "range_bytes", "max_requests_per_s"):
        value = getattr(access, name)
        if value is not None and not value > 0:
            raise AccessError(f"{name} is {value!r}, expected a number above 0. Correct it.")
    if access.anonymous and access.requester_pays:
        raise AccessError(
            "anonymous and requester_pays are both True, and nobody would pay. Leave out anonymous: the credentials of "
            "this machine pay."
        )
    if access.user_project and not access.requester_pays:
        raise AccessError(
            f"user_project is {access.user_project!r}, which pays only with requester_pays=True. Set that too."
        )
    for source in sources:
        kind = kind_of(source) if isinstance(source, str) else None
        if access.user_project and kind not in (None, StoreKind.GCS):
            raise AccessError(f"user_project is set, and {source!r} is not in GCS. Leave it out.")
        for name in ("anonymous", "requester_pays"):
            if getattr(access, name) and kind not in (None, StoreKind.GCS, StoreKind.S3):
                raise AccessError(f"{name} is True, and {source!r} is not in S3 or GCS. Leave it out.")


def filesystem_for(path: str, access: StoreAccess) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of a source with these rights, and the path as that filesystem spells it."""
    options: dict[str, Any] = {}
    match kind_of(path):
        case StoreKind.S3:
            options |= {"anon": True} if access.anonymous else {}
            options |= {"requester_pays": True} if access.requester_pays else {}
        case StoreKind.GCS:
            options |= {"token": "anon"} if access.anonymous else {}
            options |= {"requester_pays": access.user_project or True} if access.requester_pays else {}
    return filesystem_of(path, **options)


def is_web(path: str) -> bool:
    return path.startswith(("http://", "https://"))
