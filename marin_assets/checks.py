"""Asset checks: that an output is complete, for every step; and what each step expects of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from marin_assets.step.step import Step
from marin_resources.output import Observed
from marin_resources.storage.manifest import read_manifest, take_manifest

COMPLETE = "complete"


def check_specs(step: Step, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks of one step's asset."""
    complete = dg.AssetCheckSpec(COMPLETE, asset=key, description="Every file of the manifest is there, in its size.")
    return [complete] + [
        dg.AssetCheckSpec(e.name, asset=key, description=e.description or e.describe()) for e in step.expectations
    ]


def check_results(step: Step, key: dg.AssetKey, observed: Observed) -> list[dg.AssetCheckResult]:
    """What the checks say of the output as it is recorded."""
    return [_check_complete(key, observed.path)] + _check_expectations(step, key, observed.result)


def _check_complete(key: dg.AssetKey, path: str) -> dg.AssetCheckResult:
    promised, found = read_manifest(path), take_manifest(path)
    missing = sorted(set(promised.files) - set(found.files)) if promised else []
    return dg.AssetCheckResult(
        check_name=COMPLETE,
        asset_key=key,
        passed=promised is None or promised.files == found.files,
        metadata={
            "files": len(found.files),
            "bytes": found.bytes,
            "missing": len(missing),
            "first_missing": missing[0][0] if missing else "none",
            "manifest": "present" if promised else "none, the output is Marin's",
        },
    )


def _check_expectations(step: Step, key: dg.AssetKey, result: Mapping[str, Any]) -> list[dg.AssetCheckResult]:
    return [
        dg.AssetCheckResult(
            check_name=expectation.name,
            asset_key=key,
            passed=expectation.holds(result),
            metadata={
                "expected": expectation.describe(),
                "value": "missing" if (value := expectation.value_in(result)) is None else value,
            },
        )
        for expectation in step.expectations
    ]
