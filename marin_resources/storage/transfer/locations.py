"""The location of a bucket: the region that Google has for it."""

from __future__ import annotations

from functools import lru_cache

from marin_resources.storage.filesystems.filesystem import filesystem_of

MULTI_REGIONS = {"us": ("us-",), "eu": ("europe-",), "asia": ("asia-",)}
"""Location of a bucket -> how the names of regions begin, between which and it Google charges nothing or little
(cloud.google.com/storage/docs/locations)."""
DUAL_REGIONS = {
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}


class BucketUnreadableError(OSError):
    """The location of a bucket cannot be read."""


def is_in(region: str, location: str) -> bool:
    """Whether a bucket at this location is read from the region without leaving it."""
    beginnings = MULTI_REGIONS.get(location)
    if beginnings is not None:
        return region.startswith(beginnings)
    return region == location or region in DUAL_REGIONS.get(location, ()) or region in location.split("+")


@lru_cache(maxsize=1024)
def location_of(bucket: str) -> str:
    """The location of a bucket, in small letters; two regions with a "+" between. Raises BucketUnreadableError."""
    fs, _ = filesystem_of(f"gs://{bucket}")
    try:
        metadata = fs.call("GET", "b/{}", bucket, fields="location,customPlacementConfig", json_out=True)
    except Exception as error:  # of gcsfs, of its credentials, of aiohttp: without a base in common
        raise BucketUnreadableError(" ".join(str(error).split())[:200] or type(error).__name__) from None
    regions = (metadata.get("customPlacementConfig") or {}).get("dataLocations")
    return "+".join(sorted(regions)).lower() if regions else str(metadata["location"]).lower()
