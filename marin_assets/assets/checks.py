"""Asset checks: whether an output is complete, for every step, and each expectation of a step's result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import dagster as dg

from marin_assets.step.step import Step
from marin_resources.storage.output.verify import verify_listing
from marin_resources.types.digits import rounded
from marin_resources.types.output import Observed

COMPLETE = "complete"
SHOWN_FINDINGS = 5
LISTINGS_AT_ONCE = 16


class CheckSpec(dg.AssetCheckSpec):
    """A check whose op output has a valid name, also if the asset's key contains "=" or ","."""

    def get_python_identifier(self) -> str:
        return f"{op_name('/'.join(self.asset_key.path))}_{self.name}"


def check_specs(step: Step, key: dg.AssetKey) -> Sequence[dg.AssetCheckSpec]:
    """The checks of one step's asset."""
    complete = CheckSpec(COMPLETE, asset=key, description="Every file of the manifest exists, with its size.")
    expected = (CheckSpec(e.name, asset=key, description=e.description or e.describe()) for e in step.expectations)
    return [complete, *expected]


def op_name(name: str) -> str:
    """A valid op name, different for every step name; the step's own name if that is valid."""
    if re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*(/[A-Za-z0-9]+(_[A-Za-z0-9]+)*)*", name):
        return name.replace("/", "__")
    digest = hashlib.md5(name.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')}___{digest}"


def check_results(step: Step, key: dg.AssetKey, observed: Observed) -> list[dg.AssetCheckResult]:
    """The results of the checks, by the output's record."""
    return [_check_complete(key, observed.path, observed.data_path), *_check_expectations(step, key, observed)]


def check_results_of_partitions(
    step: Step, key: dg.AssetKey, observed: Mapping[str, Observed]
) -> list[dg.AssetCheckResult]:
    """The results of the checks over the partitions of a run: each holds if it holds for all of them."""
    by_check: dict[str, dict[str, dg.AssetCheckResult]] = {}
    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        checked = pool.map(lambda seen: check_results(step, key, seen), observed.values())
        for partition, results in zip(observed, checked, strict=True):
            for result in results:
                by_check.setdefault(str(result.check_name), {})[partition] = result
    return [_together(name, key, results) for name, results in by_check.items()]


def _together(name: str, key: dg.AssetKey, results: Mapping[str, dg.AssetCheckResult]) -> dg.AssetCheckResult:
    failing = {partition: result for partition, result in results.items() if not result.passed}
    first = next(iter((failing or results).values()))
    shown = [f"[{partition}] {_value(result)}" for partition, result in list(failing.items())[:SHOWN_FINDINGS]]
    if more := len(failing) - len(shown):
        shown.append(f"and {more} more partitions")
    warning = all(result.severity is dg.AssetCheckSeverity.WARN for result in failing.values()) and bool(failing)
    expected, value = _value(first, "expected"), "; ".join(shown) if failing else f"{len(results)} partitions hold it"
    return dg.AssetCheckResult(
        check_name=name,
        asset_key=key,
        passed=not failing,
        description=_why(expected, value) if failing else None,
        severity=dg.AssetCheckSeverity.WARN if warning else dg.AssetCheckSeverity.ERROR,
        metadata={
            "expected": expected,
            "value": value,
            "partitions": len(results),
            "failing": len(failing),
        },
    )


def _value(result: dg.AssetCheckResult, name: str = "value") -> str:
    value = result.metadata.get(name)
    return str(getattr(value, "value", value))


def _check_complete(key: dg.AssetKey, path: str, data_path: str) -> dg.AssetCheckResult:
    """Compare names and sizes, from one listing. No data file is read."""
    verified = verify_listing(path)
    shown = [finding.sentence() for finding in verified.findings[:SHOWN_FINDINGS]]
    if more := len(verified.findings) - len(shown):
        shown.append(f"and {more} more; `marin verify` names all")
    expected = "its files" if verified.unverified else f"the files of its manifest ({verified.files})"
    value = f"{verified.counts()}: {'; '.join(shown)}" if shown else "complete"
    return dg.AssetCheckResult(
        check_name=COMPLETE,
        asset_key=key,
        passed=verified.ok,
        description=None if verified.ok else _why(expected, value),
        metadata={
            "expected": expected,
            "value": value,
            "files": verified.files,
            "bytes": verified.bytes,
            "compared": verified.unverified or "names and sizes; `marin verify` compares the bytes",
            "path": data_path,
        },
    )


def _check_expectations(step: Step, key: dg.AssetKey, observed: Observed) -> list[dg.AssetCheckResult]:
    """Marin records no results, so its outputs get a warning, which fails no run."""
    result, recorded = observed.result, observed.record.has_result
    absent = "missing" if recorded else "not recorded"
    results = []
    for expectation in step.expectations:
        number = expectation.value_in(result)
        value = absent if number is None else rounded(number)
        holds = expectation.holds(result)
        results.append(
            dg.AssetCheckResult(
                check_name=expectation.name,
                asset_key=key,
                passed=holds,
                description=None if holds else _why(expectation.describe(), str(value)),
                severity=(
                    dg.AssetCheckSeverity.ERROR if recorded and not expectation.warn else dg.AssetCheckSeverity.WARN
                ),
                metadata={"expected": expectation.describe(), "value": value},
            )
        )
    return results


def _why(expected: str, value: str) -> str:
    return f"Failed: expected {expected}, got {value}."
