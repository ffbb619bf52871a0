"""Render the files that the catalogue means: infra/<name>.yaml of each cluster, for Ray's cluster launcher, with the
project's (`project/rendered.py`).

In:  the clusters of the catalogue and infra/cluster.yaml.jinja.   Out: the texts of the files.

The files are committed, so that a change of the catalogue or of the template is read as what it does to each cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.rendered import PROJECT, render_project
from marin_resources.infra.template import fill

TEMPLATE = "cluster.yaml.jinja"
FIRST_LINE = "# Rendered by `marin cluster render`"


def render(cluster: Cluster, folder: Path) -> str:
    """The text of the cluster's file, by the template in `folder`. Raises CatalogueError."""
    return fill(folder, TEMPLATE, cluster=cluster, cpus=cluster.worker_cpus)


def render_all(clusters: Mapping[str, Cluster], folder: Path, templates: Path) -> dict[Path, str]:
    """The path of each file in `folder` -> its text. Raises CatalogueError."""
    files = {folder / f"{name}.yaml": render(cluster, templates) for name, cluster in clusters.items()}
    return {**files, folder / PROJECT: render_project(clusters)}


def out_of_date(rendered: Mapping[Path, str], folder: Path) -> list[tuple[Path, str]]:
    """The files that are not as they should be, each with "missing", "differs" or "of no cluster"."""
    found = [
        (path, "differs" if path.is_file() else "missing")
        for path, text in rendered.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    others = (path for path in sorted(folder.glob("*.yaml")) if path not in rendered)
    return found + [
        (path, "of no cluster") for path in others if path.read_text(encoding="utf-8").startswith(FIRST_LINE)
    ]
