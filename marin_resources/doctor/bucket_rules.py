"""The configuration of a bucket: its lifecycle rules for live objects, retention, versions, uploads left behind.

Google's fields are those of its JSON API (resource Buckets), Amazon's those of GetBucketLifecycleConfiguration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import StoreKind, kind_of

COLD = ("NEARLINE", "COLDLINE", "ARCHIVE", "GLACIER", "DEEP_ARCHIVE", "STANDARD_IA", "ONEZONE_IA")
ONLY_OLD_VERSIONS = ("numNewerVersions", "daysSinceNoncurrentTime", "noncurrentTimeBefore", "customNoncurrentTime")
"""Google's conditions that no live object meets."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A lifecycle rule for live objects."""

    what: str
    """ "deletes", or the class that objects are moved to."""
    places: tuple[str, ...]
    """Beginnings of names that it is limited to; empty: all."""
    when: str

    def describe(self) -> str:
        where = " or ".join(map(repr, self.places)) if self.places else "all objects"
        return f"{self.what} {where}{self.when and f' {self.when}'}"


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The configuration of a bucket, as its store has it."""

    name: str
    rules: Sequence[Rule]
    retained: str = ""
    """Why objects cannot be replaced or deleted at once; empty if they can."""
    keeps_old_versions: bool = False
    """For ever: no rule removes them."""
    keeps_broken_uploads: bool = False
    """For ever: no rule removes the parts of an upload that was not completed."""


def read_bucket(path: str) -> Bucket:
    """The bucket of a path on GCS or S3. Raises OSError and ValueError if this account may not read its rules."""
    fs, place = filesystem_of(path)
    name = place.partition("/")[0]
    return _of_google(fs, name) if kind_of(path) is StoreKind.GCS else _of_amazon(fs, name)


def _of_google(fs: Any, name: str) -> Bucket:
    fields = fs.call("GET", "b/{}", name, json_out=True)
    rules = fields.get("lifecycle", {}).get("rule", [])
    versions = fields.get("versioning", {}).get("enabled", False)
    period_s = int(fields.get("retentionPolicy", {}).get("retentionPeriod", 0))
    return Bucket(
        name=name,
        rules=[live_rule for rule in rules if (live_rule := _google_rule(rule))],
        retained=f"retains each object for {period_s} s (retentionPolicy)" if period_s else "",
        keeps_old_versions=versions and not any(_removes_old_versions(rule) for rule in rules),
    )


def _google_rule(rule: Mapping[str, Any]) -> Rule | None:
    action, condition = rule["action"], rule.get("condition", {})
    action_phrase = {"Delete": "deletes", "SetStorageClass": action.get("storageClass", "")}.get(action["type"], "")
    if not action_phrase or condition.get("isLive") is False or any(name in condition for name in ONLY_OLD_VERSIONS):
        return None
    if action_phrase in COLD:
        action_phrase = f"moves to {action_phrase}"
    elif action_phrase != "deletes":
        return None
    others = {key: value for key, value in condition.items() if key not in ("matchesPrefix", "isLive")}
    when = ", ".join(f"{key} {value}" for key, value in sorted(others.items()))
    return Rule(what=action_phrase, places=tuple(condition.get("matchesPrefix", ())), when=when and f"({when})")


def _removes_old_versions(rule: Mapping[str, Any]) -> bool:
    condition = rule.get("condition", {})
    named = any(name in condition for name in ONLY_OLD_VERSIONS) or condition.get("isLive") is False
    return rule["action"]["type"] == "Delete" and named


def _of_amazon(fs: Any, name: str) -> Bucket:
    rules = _amazon_rules(fs, name)
    locked = _unless_absent(lambda: fs.call_s3("get_object_lock_configuration", Bucket=name)) or {}
    default = locked.get("ObjectLockConfiguration", {}).get("Rule", {}).get("DefaultRetention")
    versions = fs.call_s3("get_bucket_versioning", Bucket=name).get("Status") == "Enabled"
    return Bucket(
        name=name,
        rules=[live_rule for rule in rules for live_rule in _amazon_rule(rule)],
        retained=f"retains each object ({default['Mode']}, object lock)" if default else "",
        keeps_old_versions=versions and not any("NoncurrentVersionExpiration" in rule for rule in rules),
        keeps_broken_uploads=not any("AbortIncompleteMultipartUpload" in rule for rule in rules),
    )


def _amazon_rules(fs: Any, name: str) -> list[Mapping[str, Any]]:
    configuration = _unless_absent(lambda: fs.call_s3("get_bucket_lifecycle_configuration", Bucket=name)) or {}
    return [rule for rule in configuration.get("Rules", []) if rule.get("Status") == "Enabled"]


def _unless_absent(call: Any) -> Any:
    """The answer of S3, or None: a configuration that was never set is an error of S3, with a code of its own."""
    try:
        return call()
    except (OSError, ValueError) as error:
        cause = error.__cause__
        code = getattr(cause, "response", {}).get("Error", {}).get("Code", "")
        if code in ("NoSuchLifecycleConfiguration", "ObjectLockConfigurationNotFoundError"):
            return None
        raise


def _amazon_rule(rule: Mapping[str, Any]) -> Iterator[Rule]:
    scope = rule.get("Filter", {})
    place = scope.get("Prefix") or scope.get("And", {}).get("Prefix") or rule.get("Prefix") or ""
    places = (place,) if place else ()
    expires = rule.get("Expiration", {})
    if "Days" in expires or "Date" in expires:
        yield Rule(what="deletes", places=places, when=f"({_amazon_when(expires)})")
    for move in rule.get("Transitions", []):
        if move.get("StorageClass") in COLD:
            yield Rule(what=f"moves to {move['StorageClass']}", places=places, when=f"({_amazon_when(move)})")


def _amazon_when(fields: Mapping[str, Any]) -> str:
    return f"after {fields['Days']} days" if "Days" in fields else f"on {fields.get('Date')}"
