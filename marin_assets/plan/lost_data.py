"""Complete outputs whose data are gone, or are not as they were published.

In:  the observed outputs of a plan, or the plan.   Out: the same, with a sentence for each such output.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from marin_assets.plan.plan import Action, Kind, Planned
from marin_resources.storage.files import exists
from marin_resources.storage.output.store import Store
from marin_resources.storage.output.verify import verify_listing
from marin_resources.storage.paths import is_local
from marin_resources.types.output import Observed, Output
from marin_resources.types.versioned_json import ControlFileError

THREADS = 32

One = TypeVar("One")
Result = TypeVar("Result")


def with_lost_data(store: Store, observed: Mapping[Output, Observed]) -> dict[Output, Observed]:
    """The observed outputs, of which those that were adopted from a place without data are damaged. Others have their
    data beside their control files."""
    adopted = [output for output, seen in observed.items() if seen.adopted is not None]
    stored = _map(lambda output: exists(observed[output].data_path), adopted, store)
    lost = [output for output, is_stored in zip(adopted, stored, strict=True) if not is_stored]
    return {**observed, **{output: _damaged(output, observed[output]) for output in lost}}


def verified(planned: Sequence[Planned], store: Store) -> list[Planned]:
    """The plan, with the names and sizes of the files of each reused output compared with its manifest."""
    reused = [item for item in planned if item.action is Action.REUSE and item.observed.done]
    findings = dict(zip((item.node.output for item in reused), _map(_findings, reused, store), strict=True))
    return [_with_findings(item, findings.get(item.node.output, "")) for item in planned]


def _damaged(output: Output, seen: Observed) -> Observed:
    partition = "" if output.partition is None else f" --partition {shlex.quote(output.partition)}"
    sentence = (
        f"{output.label!r} is adopted from {seen.data_path!r}, and its data are gone from there. Restore them, or undo "
        f"the adoption: marin adopt {shlex.quote(output.name)}{partition} --undo"
    )
    return dataclasses.replace(seen, damage=sentence)


def _findings(item: Planned) -> str:
    """A phrase; "" if all is as it was published."""
    try:
        listing = verify_listing(item.observed.path, item.observed.record)
    except ControlFileError as error:
        return str(error)
    if listing.ok:
        return ""
    more = "" if len(listing.findings) == 1 else f" and {len(listing.findings) - 1} more, which `marin verify` lists"
    return f"its files are not as its manifest says: {listing.findings[0].sentence()}{more}"


def _with_findings(item: Planned, findings: str) -> Planned:
    if not findings:
        return item
    reason = "; ".join(filter(None, (item.reason, findings if findings not in item.reason else "")))
    return dataclasses.replace(item, kind=Kind.DAMAGED, reason=reason, damage=item.damage or findings)


def _map(function: Callable[[One], Result], values: Iterable[One], store: Store) -> list[Result]:
    if is_local(store.prefix):  # threads would take longer to start
        return list(map(function, values))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, values))
