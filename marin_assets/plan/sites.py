"""What decides which cluster of a fleet computes a node, and what is copied there first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from marin_assets.plan.plan import Action, Planned
from marin_assets.step.graph import Node
from marin_assets.step.resolve import mirror_budget_gb
from marin_assets.step.values import InputName, MirroredValue, map_leaves
from marin_resources.output import Observed, Output
from marin_resources.ray_tpu.fleet.choose import choose_site
from marin_resources.ray_tpu.fleet.fleet import Fleet
from marin_resources.ray_tpu.site import GB_BYTES, Needs, NoSiteError, Site
from marin_resources.storage.files import find_below, sizes_below
from marin_resources.storage.manifest.manifest import read_manifest
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.account import default_budget_bytes
from marin_resources.wire.config_json import Json, plain


def needs_of(node: Node, store: Store, inputs: Mapping[str, Observed], external: Mapping[str, str]) -> Needs:
    """What decides where the node is computed. `inputs`: observed, by label. `external`: path in the config -> where it
    is."""
    budget_gb = mirror_budget_gb(node.step)
    parts = _parts(node)

    def size_of(name: str) -> int | None:
        if name in external:
            return sum(sizes_below(external[name]).values())
        return _bytes_of(inputs[name], parts.get(node.inputs[name].name, ()))

    return Needs(
        step=node.output.label,
        resources=node.step.resources,
        places={**{label: seen.data_path for label, seen in inputs.items()}, **external},
        size_of=size_of,
        earlier=store.data_path(node.output) if node.step.resumable and store.has_begun(node.output) else None,
        budget_bytes=default_budget_bytes() if budget_gb is None else round(budget_gb * GB_BYTES),
    )


def with_sites(planned: Iterable[Planned], store: Store, fleet: Fleet) -> list[Planned]:
    """The plan with the cluster of each step that runs, inputs first. What no cluster may compute is blocked.

    An input that is computed by the same plan is where its own step goes, and of a size that is not known yet.
    """
    sites: dict[Output, Site] = {}
    observed: dict[Output, Observed] = {}
    found = []
    for item in planned:
        observed[item.node.output] = item.observed
        if item.action is Action.RUN:
            try:
                item = replace(item, site=_site_of(item.node, store, fleet, observed, sites))
            except NoSiteError as error:
                item = replace(item, action=Action.BLOCKED, reason=str(error), lacks=True)
        if item.site is not None:
            sites[item.node.output] = item.site
        found.append(item)
    return found


def _site_of(
    node: Node, store: Store, fleet: Fleet, observed: dict[Output, Observed], sites: Mapping[Output, Site]
) -> Site:
    for output in node.inputs.values():
        if output not in observed and output not in sites:
            observed[output] = store.look([output])[output]
    inputs = {
        label: Observed(path=store.locate(output, sites[output].prefix)) if output in sites else observed[output]
        for label, output in node.inputs.items()
    }
    names = [*external_names(node), *mirrored_names(node)]
    places = {name: find_below(name, fleet.prefixes()) for name in names}
    external = {name: path for name, path in places.items() if path is not None}
    return choose_site(needs_of(node, store, inputs, external), fleet)


def external_names(node: Node) -> list[str]:
    """The paths in a config that are not outputs of steps: relative to the prefix, or absolute."""
    return list(dict.fromkeys(leaf.name for leaf in _inputs(node) if leaf.step is None and leaf.name))


def mirrored_names(node: Node) -> list[str]:
    """The same of the paths that are read through the mirror."""
    names: list[str] = []

    def note(leaf: Any) -> Any:
        if isinstance(leaf, MirroredValue):
            map_leaves(leaf.value, note)
            names.extend([leaf.value] if isinstance(leaf.value, str) else [])
        if isinstance(leaf, InputName) and leaf.step is None and leaf.name:
            names.append(leaf.name)
        return leaf

    map_leaves([leaf for leaf in _leaves(node) if isinstance(leaf, MirroredValue)], note)
    return list(dict.fromkeys(names))


def copies_for(site: Site, config: Json) -> tuple[str, ...]:
    """The `mirror://` paths of what the config names and another region has. What the config reads through the mirror
    already is copied when it is read."""
    named = list(dict.fromkeys(_texts(plain(config))))
    found = []
    for move in site.moves:
        here = join(site.prefix, move.relative)
        found += [text for text in named if text == here or text.startswith(f"{here}/")]
    return tuple(f"mirror://{path.removeprefix(site.prefix).strip('/')}" for path in dict.fromkeys(found))


def _bytes_of(seen: Observed, parts: tuple[str, ...]) -> int | None:
    """The bytes of an output, or of the named parts of it; None for one of Marin's, which has no manifest."""
    whole = ((seen.record or {}).get("manifest") or {}).get("bytes")
    if whole is None or not parts:
        return whole
    manifest = read_manifest(seen.path)
    if manifest is None:
        return int(whole)
    return sum(
        entry.size
        for entry in manifest.entries
        if any(entry.name == part or entry.name.startswith(f"{part}/") for part in parts)
    )


def _parts(node: Node) -> dict[str, tuple[str, ...]]:
    """Step name -> the files or folders that the node reads of its output; nothing of a step that it reads whole."""
    found: dict[str, list[str]] = {}
    for leaf in _inputs(node):
        if leaf.step is not None:
            found.setdefault(leaf.step.name, []).append(leaf.name or "")
    return {name: tuple(parts) for name, parts in found.items() if all(parts)}


def _inputs(node: Node) -> list[InputName]:
    return [leaf for leaf in _leaves(node) if isinstance(leaf, InputName)]


def _leaves(node: Node) -> list[Any]:
    found: list[Any] = []

    def note(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    map_leaves(node.step.config, note)
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
