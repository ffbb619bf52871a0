"""The request for a node's output: its inputs, the paths that must exist, and the task that computes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial

from marin_assets.catalog.asset_key import selection_of
from marin_assets.documents.frames.id_merge import merge_ids
from marin_assets.plan.record_facts.adopted_inputs import adopted_paths, unwaited_inputs
from marin_assets.plan.record_facts.facts import describe_node, resolved_config
from marin_assets.plan.sites.inputs import external_names, mirrored_names, urls_in
from marin_assets.plan.sites.needs import needs_of
from marin_assets.step.graph import Graph, Node
from marin_assets.step.resolve import mirror_budget_gb
from marin_resources.orchestrator.produce import ProduceRequest
from marin_resources.ray_tpu.site import NoSiteError, Site
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import join
from marin_resources.storage.transfer.foreign_buckets import foreign_to, refusal
from marin_resources.storage.transfer.regions import PREFIXES, declared_regions
from marin_resources.types.output import Observed
from marin_resources.wire.config_json import Json, plain, texts_in
from marin_resources.wire.reference import reference_to
from marin_resources.wire.task import Task


def build_request(
    node: Node, graph: Graph, store: Store, run_id: str | None, was_long_running: Callable[[], bool] = lambda: False
) -> ProduceRequest:
    """The request for a node's output. `was_long_running` queries its last materialization, and may block."""
    return ProduceRequest(
        output=node.output,
        selection=selection_of(node),
        inputs=node.inputs,
        external=tuple(external_names(node)),
        mirrored=tuple(mirrored_names(node)),
        needs=partial(needs_of, node, graph, store),
        task=lambda attempt, inputs, site: build_task(
            node, graph, store, attempt, inputs, run_id, was_long_running, site
        ),
    )


def build_task(
    node: Node,
    graph: Graph,
    store: Store,
    attempt: int,
    inputs: Mapping[str, Observed],
    run_id: str | None,
    was_long_running: Callable[[], bool] = lambda: False,
    site: Site | None = None,
) -> Task:
    """The task that computes the node's output. `inputs` are its observed inputs, by step name; `site` the cluster of
    a fleet that it goes to."""
    output, step = node.output, node.step
    unwaited = unwaited_inputs(node)
    looked = store.look(unwaited.values())
    inputs = {**inputs, **{label: looked[source] for label, source in unwaited.items() if looked[source].adopted}}
    config, adopted = resolved_config(node, graph, store, site, inputs), adopted_paths(node, inputs, site)
    if site is None:
        refuse_foreign_urls(node, adopted.values())
    elsewhere = site is not None and site.prefix != store.prefix
    return Task(
        output=output,
        prefix=store.prefix,
        path=store.locate(output),
        inputs=tuple(observed.path for observed in inputs.values()),
        data_prefix=site.prefix if site is not None and elsewhere else None,
        copies=copies_for(site, config) if site is not None else (),
        records={path: store.locate(source) for source, path in adopted.items()},
        cluster=site.cluster if site is not None else "",
        fn=reference_to(step.fn),
        finish=reference_to(merge_ids),
        config=config,
        resources=step.resources,
        extras=tuple(step.extras),
        env=tuple(step.env),
        packages=tuple(step.packages),
        timeout_s=step.timeout_s,
        progress_timeout_s=step.progress_timeout_s,
        own_job=(True if was_long_running() else None) if step.own_job is None else step.own_job,
        submitted_at=datetime.now(UTC).isoformat(),
        attempt=attempt,
        resumable=step.resumable,
        mirror_budget_bytes=None if (gb := mirror_budget_gb(step)) is None else round(gb * 10**9),
        run_id=run_id,
        facts=describe_node(node, store, config, inputs, run_id, site),
    )


def copies_for(site: Site, config: Json) -> tuple[str, ...]:
    """The `mirror://` paths of data that the config names and another region has, and of the records of these outputs,
    which some stages read. Data that the config reads through the mirror already are copied when they are read."""
    named = list(dict.fromkeys(texts_in(plain(config))))
    copied = []
    for move in site.moves:
        here = join(site.prefix, move.relative)
        texts = [text for text in named if text == here or text.startswith(f"{here}/")]
        copied += texts
        if texts and move.is_output:
            copied.append(join(here, RECORD))
    return tuple(f"mirror://{path.removeprefix(site.prefix).strip('/')}" for path in dict.fromkeys(copied))


def refuse_foreign_urls(node: Node, adopted: Iterable[str] = ()) -> None:
    """Raise NoSiteError for a gs:// URL of another region, where the regions are declared and no fleet chooses.
    `adopted`: where its adopted inputs are."""
    urls = [*urls_in(node), *adopted]
    if not urls or not os.environ.get(PREFIXES, "").strip():
        return
    region = declared_regions().local.name
    foreign = foreign_to(region, urls)
    if foreign:
        raise NoSiteError(refusal(node.output.label, region, foreign))
