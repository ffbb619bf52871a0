"""Render the files that follow from the catalogue: infra/<name>.yaml of each cluster, for Ray's cluster launcher, and
infra/project.json, the resources and rights that the project of Google Cloud shall have, for review.

In:  the clusters of the catalogue and infra/cluster.yaml.jinja.   Out: the texts of the files.

The files are committed, so that the effect of a change of the catalogue or of the template on each cluster is reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.desired_state import wanted_project
from marin_resources.infra.template import fill

PROJECT = "project.json"
OPERATORS = "group:OPERATORS"
"""Stands for the members of --operator."""

TEMPLATE = "cluster.yaml.jinja"
FIRST_LINE = "# Rendered by `marin cluster render`"


def render(cluster: Cluster, folder: Path) -> str:
    """The text of the cluster's file, by the template in `folder`. Raises CatalogueError."""
    return fill(folder, TEMPLATE, cluster=cluster, cpus=cluster.worker_cpus)


def render_all(clusters: Mapping[str, Cluster], folder: Path, templates: Path) -> dict[Path, str]:
    """The path of each file in `folder` -> its text. Raises CatalogueError."""
    files = {folder / f"{name}.yaml": render(cluster, templates) for name, cluster in clusters.items()}
    return {**files, folder / PROJECT: _render_project(clusters)}


def out_of_date(rendered: Mapping[Path, str], folder: Path) -> list[tuple[Path, str]]:
    """The files that are not as they should be, each with "missing", "differs" or "of no cluster"."""
    outdated = [
        (path, "differs" if path.is_file() else "missing")
        for path, text in rendered.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    others = (path for path in sorted(folder.glob("*.yaml")) if path not in rendered)
    return outdated + [
        (path, "of no cluster") for path in others if path.read_text(encoding="utf-8").startswith(FIRST_LINE)
    ]


def _render_project(clusters: Mapping[str, Cluster]) -> str:
    """The text of the project's file. Raises CatalogueError."""
    project = wanted_project(list(clusters.values()), (OPERATORS,))
    resources = [
        {
            "kind": resource.kind,
            "url": resource.url,
            "create": resource.collection,
            "query": resource.query,
            "body": resource.body,
        }
        for resource in project.resources
    ]
    rights: dict[str, list[str]] = {}
    for grant in project.grants:
        rights.setdefault(f"{grant.role} on {grant.on}", []).append(grant.member)
    document = {"project": project.project, "services": project.apis, "resources": resources, "rights": rights}
    return json.dumps(document, indent=1) + "\n"
