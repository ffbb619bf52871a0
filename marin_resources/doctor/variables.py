"""The environment variables of a deployment: a name that nothing reads is most likely a typo, and changes nothing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.storage.lease.text import ttl_s
from marin_resources.storage.usage.prices import declared_prices

SUBJECT = "variables"
SETTINGS = frozenset(
    {
        "MARIN_CLUSTER",
        "MARIN_CLUSTER_CODE",
        "MARIN_CLUSTER_ENVIRONMENTS",
        "MARIN_CLUSTER_IMAGE_ROOT",
        "MARIN_CLUSTER_NODE_TYPES",
        "MARIN_CLUSTER_OUTAGE_TIMEOUT_S",
        "MARIN_CLUSTER_START_TIMEOUT_S",
        "MARIN_CLUSTER_TOKEN_SECRET",
        "MARIN_CLUSTER_WORKING_DIR",
        "MARIN_DEVICE_PRICES",
        "MARIN_FAKE_TPU",
        "MARIN_LEASE_TTL_S",
        "MARIN_LOG_FORMAT",
        "MARIN_MIRROR_BUDGET_GB",
        "MARIN_MIRROR_PREFIXES",
        "MARIN_MIRROR_PRICES",
        "MARIN_PACKAGES_DIR",
        "MARIN_POSTGRES_URL",
        "MARIN_PREFIX",
        "MARIN_REGION",
        "MARIN_SECRETS_DIR",
        "MARIN_SECRETS_PROJECT",
        "MARIN_SECRET_MANAGER_URL",
        "MARIN_STATE_DIR",
        "MARIN_UI_URL",
        "MARIN_WEBHOOK_URL",
    }
)
"""What a person sets. docs/reference/configuration.md has a row for each."""
INTERNAL = frozenset(
    {
        "MARIN_ACCELERATOR",
        "MARIN_ATTEMPT_LOG",
        "MARIN_ATTEMPT_LOG_PUMPED",
        "MARIN_COORDINATOR",
        "MARIN_FAULT_POINT",
        "MARIN_HOST_COUNT",
        "MARIN_HOST_INDEX",
        "MARIN_LOCAL_CLUSTER",
        "MARIN_MIRROR_BUDGET_BYTES",
        "MARIN_SLICE_COUNT",
        "MARIN_SLICE_INDEX",
        "MARIN_STEP_ATTEMPT",
        "MARIN_STEP_NAME",
        "MARIN_STEP_OUTPUT",
        "MARIN_WRITER",
    }
)
"""What a process sets for its children."""


def look() -> Iterator[Finding]:
    yield from unread(os.environ)
    yield from _unusable()
    found = sorted(name for name in os.environ if name in SETTINGS)
    yield ok(SUBJECT, f"set: {', '.join(found) or 'none, each has its default'}")


def unread(environ: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each variable that is named like one of ours, and that nothing reads."""
    for name in sorted(environ):
        if name.startswith("MARIN_") and name not in SETTINGS | INTERNAL:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            advice = f"Did you mean {near[0]}?" if near else "Unset it, or correct its name."
            yield wrong(SUBJECT, f"{name} is set, and nothing reads it. {advice}")
    if environ.get("DAGSTER_MODULE_NAME"):
        yield wrong(
            SUBJECT, "DAGSTER_MODULE_NAME is set, so `dagster dev` does not start. Unset it, and pass -m to commands."
        )


def _unusable() -> Iterator[Finding]:
    """What no other look reads. Raises SettingError for the first that is wrong."""
    ttl_s()
    declared_prices()
    ui = os.environ.get("MARIN_UI_URL", "")
    if ui and (urlsplit(ui).scheme not in ("http", "https") or not urlsplit(ui).hostname):
        yield wrong(SUBJECT, f"MARIN_UI_URL is {ui!r}, expected the address of the UI, such as http://127.0.0.1:3000.")
    packages = os.environ.get("MARIN_PACKAGES_DIR", "")
    if packages and os.path.exists(packages) and not os.access(packages, os.W_OK | os.X_OK):
        yield warning(SUBJECT, f"MARIN_PACKAGES_DIR is {packages!r}, which this user may not write. Choose another.")
