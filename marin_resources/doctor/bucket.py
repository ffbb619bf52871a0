"""The bucket's own rules: one that deletes live objects deletes outputs, and a retention policy forbids leases."""

from __future__ import annotations

from collections.abc import Iterator

from marin_resources.configuration.settings import default_prefix
from marin_resources.dagster_fixes.compute_logs.objects import FOLDER as FOLDER_OF_LOGS
from marin_resources.doctor.bucket_rules import Bucket, Rule, read_bucket
from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.doctor.store import require_store
from marin_resources.storage.paths import StoreKind, kind_of, without_scheme

SUBJECT = "bucket"


def look() -> Iterator[Finding]:
    """Raises SettingError and UnavailableError, as the look at the prefix."""
    prefix = default_prefix()
    if kind_of(prefix) not in (StoreKind.GCS, StoreKind.S3):
        yield ok(SUBJECT, "none: the prefix is a folder")
        return
    name, _, key = without_scheme(prefix).partition("/")
    require_store(prefix)
    try:
        bucket = read_bucket(prefix)
    except (OSError, ValueError) as error:
        why = str(error).removesuffix(".")
        yield warning(
            SUBJECT, f"The rules of {name!r} cannot be read ({why}). Ask its owner whether any deletes objects."
        )
        return
    yield from assess(bucket, key)


def assess(bucket: Bucket, key: str) -> Iterator[Finding]:
    """The findings about a bucket's rules, for the prefix at `key` in it."""
    findings = [
        *(finding for rule in bucket.rules if (finding := _of_rule(bucket.name, rule, key))),
        *_of_bucket(bucket),
    ]
    yield from findings or [ok(SUBJECT, f"{bucket.name}: no rule deletes, moves or retains objects of the prefix")]


def _of_rule(name: str, rule: Rule, key: str) -> Finding | None:
    below = f"{key}/" if key else ""
    whole = not rule.places or any(below.startswith(place) for place in rule.places)
    part = [
        place for place in rule.places if place.startswith(below) and not place.startswith(f"{below}{FOLDER_OF_LOGS}/")
    ]
    if not whole and not part:
        return None
    if rule.what != "deletes":
        return warning(
            SUBJECT,
            f"A lifecycle rule of {name!r} {rule.describe()}. Each read of such an output is charged; limit the rule "
            "to other prefixes.",
        )
    if whole:
        return wrong(
            SUBJECT,
            f"A lifecycle rule of {name!r} {rule.describe()}: outputs, and what they were made of, vanish. Remove it, "
            "or limit it to other prefixes (matchesPrefix).",
        )
    return warning(
        SUBJECT, f"A lifecycle rule of {name!r} {rule.describe()}. Give no step a name below {' or '.join(part)}."
    )


def _of_bucket(bucket: Bucket) -> Iterator[Finding]:
    if bucket.retained:
        yield wrong(
            SUBJECT,
            f"{bucket.name!r} {bucket.retained}: leases and statuses cannot be replaced, so no step runs. Use a bucket "
            "without it.",
        )
    if bucket.keeps_old_versions:
        yield warning(
            SUBJECT,
            f"{bucket.name!r} keeps all old versions of objects for ever, one for each renewal of a lease. Add a rule "
            "that deletes noncurrent versions after some days.",
        )
    if bucket.keeps_broken_uploads:
        yield warning(
            SUBJECT,
            f"{bucket.name!r} keeps the parts of uploads that a killed worker did not complete, and charges for them. "
            "Add a rule that aborts incomplete multipart uploads after 7 days.",
        )
