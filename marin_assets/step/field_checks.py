"""Check the fields of a step, but its function and config: a wrong one would fail in Dagster, or hours later.

Defaults cost nothing: an experiment may have thousands of steps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from marin_assets.step.expectation import Expectation
from marin_assets.step.origin import Origin
from marin_assets.step.partitions.sets import Partitions
from marin_assets.step.placement import require_override
from marin_assets.step.step_group import require_group
from marin_assets.step.values import ConfigError
from marin_resources.hardware.resources import Resources

MOST_BYTES = 200
"""The bytes of a segment of a step's name: a name in a file system has 255, and a version or a suffix follows."""
COMPLETE = "complete"
"""The check that every asset has."""
_SEGMENT = re.compile(r"[^\s/\\\x00-\x1f\"*?\[\]{}#%]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNER = re.compile(r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
_KIND = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_TAG_NAME = re.compile(r"([A-Za-z0-9_.-]{1,63}/|dagster/kind/)?[A-Za-z0-9_.-]{1,63}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.-]{0,63}")


def require_name(name: object) -> None:
    """Raise ConfigError for what cannot be a step's name."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"A step has the name {name!r}, expected a text such as 'tokenized/fineweb'.")
    for segment in name.split("/"):
        if segment in ("", ".", "..") or segment.startswith(".") or not _SEGMENT.fullmatch(segment):
            raise ConfigError(
                f"A step has the name {name!r}, in which {segment!r} is not a name. Expected segments joined by '/', "
                "without spaces, wildcards, quotes or a leading dot."
            )
        if (size := len(segment.encode())) > MOST_BYTES:
            raise ConfigError(
                f"A step has the name {name[:40]!r}..., of which {segment[:20]!r}... is {size} bytes long, expected at "
                f"most {MOST_BYTES}: a folder's name has 255, and the version is added. Shorten it."
            )


def require_fields(step: Any) -> None:
    """Raise ConfigError, which names the step and the field, for the first field that cannot be used."""
    name = step.name
    if step.partitions is not None and not isinstance(step.partitions, Partitions):
        raise ConfigError(
            f"Step {name!r} has partitions={step.partitions!r:.100}, expected static(), dynamic(), hourly(), "
            "daily(), weekly(), monthly() or product()."
        )
    limit = step.max_partitions_per_run
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ConfigError(f"Step {name!r} has max_partitions_per_run={limit!r}, expected 1 or more, or None.")
    if step.override_output_path is not None:
        require_override(step.override_output_path, name)
    for field, unit in (("timeout_s", "seconds"), ("progress_timeout_s", "seconds"), ("expected_flops", "operations")):
        _require_amount(getattr(step, field), field, unit, name)
    if step.own_job not in (None, True, False):
        raise ConfigError(f"Step {name!r} has own_job={step.own_job!r}, expected True, False or None.")
    if step.resumable not in (True, False):
        raise ConfigError(f"Step {name!r} has resumable={step.resumable!r}, expected True or False.")
    if not isinstance(step.resources, Resources):
        raise ConfigError(f"Step {name!r} has resources={step.resources!r:.100}, expected cpu(), gpu() or tpu().")
    if step.description is not None and not isinstance(step.description, str):
        raise ConfigError(f"Step {name!r} has description={step.description!r:.100}, expected a text or None.")
    for field, example in (
        ("extras", "'train'"),
        ("env", "'HF_TOKEN'"),
        ("packages", "'lxml>=5'"),
        ("owners", "'me@example.org'"),
        ("kinds", "'python'"),
    ):
        if (texts := getattr(step, field)) != ():
            _require_texts(texts, field, example, name)
    if step.key is not None:
        _require_texts(step.key, "key", "'fineweb', 'tokenized'", name)
        if not step.key:
            raise ConfigError(f"Step {name!r} has key=(), expected a text at least. Leave it None for the name's.")
    if step.group is not None:
        require_group(step.group, f"Step {name!r}")
    for variable in step.env:
        if not _VARIABLE.fullmatch(variable):
            raise ConfigError(f"Step {name!r} has {variable!r} in env, expected the name of a variable, as HF_TOKEN.")
    for owner in step.owners:
        if not _OWNER.fullmatch(owner):
            raise ConfigError(f"Step {name!r} has the owner {owner!r}, expected an address, or 'team:data'.")
    for kind in step.kinds:
        if not _KIND.fullmatch(kind):
            raise ConfigError(
                f"Step {name!r} has the kind {kind!r}, expected at most 63 letters, digits, '_', '-' and '.'."
            )
    if step.origin is not None and not isinstance(step.origin, Origin):
        raise ConfigError(f"Step {name!r} has origin={step.origin!r:.100}, expected Origin(name=…) or None.")
    if step.packages:
        _require_requirements(step.packages, name)
    if step.expectations != ():
        _require_expectations(step.expectations, name)


def tags_of(given: Any, step: str) -> dict[str, str]:
    """The tags by name. Raises ConfigError for what Dagster would not take."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(tag, str) for tag in given):
        pairs = [(name, value) for name, _, value in (tag.partition("=") for tag in given)]
    else:
        raise ConfigError(f"Step {step!r} has tags={given!r}, expected a dict of texts, or a list of them.")
    for name, value in pairs:
        if not isinstance(name, str) or not _TAG_NAME.fullmatch(name):
            raise ConfigError(
                f"Step {step!r} has the tag {name!r}, expected at most 63 letters, digits, '_', '-' and '.', and one "
                "'/' after a namespace."
            )
        if not isinstance(value, str) or not _TAG_VALUE.fullmatch(value):
            raise ConfigError(
                f"Step {step!r} has the tag {name!r} with the value {value!r}, expected a text of at most 63 letters, "
                "digits, '_', '-' and '.'."
            )
    return dict(pairs)


def _require_amount(amount: Any, field: str, unit: str, step: str) -> None:
    if amount is None:
        return
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise ConfigError(f"Step {step!r} has {field}={amount!r}, expected {unit} above 0 or None.")


def _require_texts(texts: Any, field: str, example: str, step: str) -> None:
    is_collection = isinstance(texts, Collection) and not isinstance(texts, str | bytes | Mapping)
    if not is_collection or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"Step {step!r} has {field}={texts!r:.100}, expected a tuple of texts, such as ({example},).")


def _require_requirements(packages: Sequence[str], step: str) -> None:
    from packaging.requirements import InvalidRequirement, Requirement  # late, for its weight

    for requirement in packages:
        try:
            Requirement(requirement)
        except InvalidRequirement:
            raise ConfigError(
                f"Step {step!r} has {requirement!r} in packages, expected a requirement such as 'lxml>=5'."
            ) from None


def _require_expectations(expectations: Any, step: str) -> None:
    is_list = isinstance(expectations, Sequence) and not isinstance(expectations, str)
    if not is_list or not all(isinstance(item, Expectation) for item in expectations):
        raise ConfigError(f"Step {step!r} has expectations={expectations!r:.100}, expected a list of expect().")
    names = [item.name for item in expectations]
    for item, name in zip(expectations, names, strict=True):
        if names.count(name) > 1:
            raise ConfigError(
                f"Step {step!r} has {names.count(name)} expectations of {item.metric!r}, expected each once. Pass both "
                "bounds to one expect()."
            )
        if name == COMPLETE:
            raise ConfigError(
                f"Step {step!r} expects the metric {item.metric!r}, and {COMPLETE!r} is a check that every step has. "
                "Rename the metric."
            )
