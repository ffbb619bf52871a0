"""Files of an output that its result names: plots, shown on the page, and the report, linked from it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import dagster as dg

from marin_assets.browse.links import link_of_output
from marin_resources.dagster_fixes.output_pages import address_in_place, address_of
from marin_resources.orchestrator.links import link_to
from marin_resources.storage.files import exists, read_bytes, size_of
from marin_resources.storage.paths import join
from marin_resources.types.output import Observed

WEB = ("http://", "https://")
MAX_PLOT_BYTES = 400_000
"""A larger plot is shown as a path: metadata rows are stored in Dagster's database."""


def plots_of(observed: Observed) -> dict[str, dg.MetadataValue]:
    """The plots that the result names, each as an image, or as a path if it is large."""
    plots = observed.result.get("plots")
    names = [name for name in plots if isinstance(name, str)] if isinstance(plots, list) else []
    return {
        f"plot {name.rsplit('/', 1)[-1]}": _inline(join(observed.data_path, name))
        for name in names
        if exists(join(observed.data_path, name))
    }


def report_of(observed: Observed) -> dict[str, Any]:
    """The page that the result names as its report."""
    name = observed.result.get("report")
    return {"report": link_to(join(observed.data_path, name))} if isinstance(name, str) else {}


def data_of(observed: Observed) -> dict[str, Any]:
    """The page of the output in the data browser, where the address of one is set, and the path is shown there."""
    link = link_of_output(observed.path)
    return {} if link is None else {"browse": dg.MetadataValue.url(link)}


def links_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """The links that the result names: a URL opens its page, and a command is shown as it is."""
    links = result.get("links")
    targets = links if isinstance(links, Mapping) else {}
    return {
        f"link {name}": dg.MetadataValue.url(target) if target.startswith(WEB) else target
        for name, target in targets.items()
        if isinstance(target, str)
    }


def _inline(path: str) -> dg.MetadataValue:
    """The image in place if the UI's server has it. Dagster shows Markdown that has the image itself behind a click."""
    address = address_of(path)
    if address is not None:
        return dg.MetadataValue.md(f"[![{path.rsplit('/', 1)[-1]}]({address_in_place(path)})]({address})")
    if size_of(path) > MAX_PLOT_BYTES:
        return dg.MetadataValue.path(path)
    kind = "svg+xml" if path.endswith(".svg") else "png"
    data = base64.b64encode(read_bytes(path)).decode()
    return dg.MetadataValue.md(f"![{path.rsplit('/', 1)[-1]}](data:image/{kind};base64,{data})")
