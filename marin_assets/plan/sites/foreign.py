"""Refuse a URL of another region where no fleet chooses a cluster, and the regions are declared."""

from __future__ import annotations

import os
from collections.abc import Iterable

from marin_assets.plan.sites.inputs import urls_in
from marin_assets.step.graph import Node
from marin_resources.ray_tpu.site import NoSiteError
from marin_resources.storage.transfer.foreign_buckets import foreign_to, refusal
from marin_resources.storage.transfer.regions import PREFIXES, declared_regions


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
