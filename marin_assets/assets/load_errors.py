"""Experiments that are left out of the code location, as Dagster shows them: an asset and a failing check of each."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from marin_resources.types.errors import MarinError

GROUP = "left_out"
CHECK = "loads"
VALIDATION_VARIABLE = "DAGSTER_IS_DEFS_VALIDATION_CLI"
"""Set by `dagster definitions validate` and `dg check defs`."""


class LeftOutError(MarinError, ValueError):
    """Experiments are left out, and the code location is being validated: their sentences."""


def assets_of_left_out(left_out: Mapping[str, str]) -> tuple[list[dg.AssetSpec], list[dg.AssetChecksDefinition]]:
    """An asset `left_out/<experiment>` for each, with the reason as its description, and a check that fails with it.

    No run computes such an asset, so *Materialize all* passes it over.
    """
    specs, checks = [], []
    for name, sentence in left_out.items():
        spec = dg.AssetSpec(
            dg.AssetKey([GROUP, name]), group_name=GROUP, description=sentence, metadata={"marin/left_out": sentence}
        )
        specs.append(spec)
        checks.append(_check(spec.key, sentence))
    return specs, checks


def _check(key: dg.AssetKey, sentence: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=key, name=CHECK, description="The file imports, and its steps clash with no other experiment."
    )
    def loads() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, description=sentence, metadata={"error": sentence})

    return loads
