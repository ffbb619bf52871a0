"""The environment variables of a deployment: a name that nothing reads is most likely a typo, and changes nothing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping

from marin_resources.configuration.check import check_setting
from marin_resources.configuration.file import source_of
from marin_resources.configuration.settings import SettingError
from marin_resources.configuration.table import BY_NAME, CLUSTER, PREFIX, REGIONS
from marin_resources.doctor.finding import Finding, ok, wrong
from marin_resources.doctor.folders import why_unusable

SUBJECT = "variables"
SETTINGS = frozenset(name for name in BY_NAME if name.startswith("MARIN_"))
"""Variables that a person sets. docs/reference/configuration.md has a row for each."""
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
"""Variables that a process sets for its children."""
OTHER_LOOKS = (PREFIX, REGIONS, CLUSTER)
"""Checks that the looks at prefix, regions and cluster make."""


FOLDERS = ("MARIN_PACKAGES_DIR", "MARIN_STATE_DIR")
"""Written to, and created when they are needed."""
PYTHONS = ("MARIN_TORCH_PYTHON", "MARIN_VLLM_PYTHON", "MARIN_INSPECT_PYTHON")


def look() -> Iterator[Finding]:
    yield from unread(os.environ)
    yield from _unusable()
    yield from _sources()


def _sources() -> Iterator[Finding]:
    """The sources of the values."""
    names_by_source: dict[str, list[str]] = {}
    for name in BY_NAME:
        names_by_source.setdefault(source_of(name) or "default", []).append(name)
    for source in sorted(
        names_by_source, key=lambda source_name: (source_name == "default", source_name != "environment", source_name)
    ):
        named = source if source in ("default", "environment") else repr(source)
        yield ok(
            SUBJECT,
            f"from {named}: {', '.join(names_by_source[source])}"
            if source != "default"
            else _defaults(names_by_source),
        )


def _defaults(names_by_source: Mapping[str, list[str]]) -> str:
    count = len(names_by_source["default"])
    return f"{count} have their default" if len(names_by_source) > 1 else "none is set, each has its default"


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
    """Settings that no other look reads, with values that cannot be used."""
    for setting in BY_NAME.values():
        try:
            if setting.check not in OTHER_LOOKS:
                check_setting(setting)
        except SettingError as error:
            yield wrong(SUBJECT, str(error))
    for name in FOLDERS:
        if (place := os.environ.get(name, "")) and (why := why_unusable(os.path.expanduser(place))):
            yield wrong(SUBJECT, f"{name} is {place!r}, and {why}. Choose another folder, or unset it.")
    secrets = os.environ.get("MARIN_SECRETS_DIR", "")
    if secrets and not os.path.isdir(secrets):
        yield wrong(SUBJECT, f"MARIN_SECRETS_DIR is {secrets!r}, which is no folder. Correct it, or unset it.")
    for name in PYTHONS:
        if (path := os.environ.get(name, "")) and not os.access(path, os.X_OK):
            yield wrong(SUBJECT, f"{name} is {path!r}, which is no program. Name the bin/python of an environment.")
