"""infra/project.json: all that the project of Google Cloud shall have, to be read.

In:  the clusters of the catalogue.   Out: the text of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from marin_resources.clusters.cluster import Cluster
from marin_resources.infra.project.wanted import wanted_project

PROJECT = "project.json"
OPERATORS = "group:OPERATORS"
"""Stands for the members of --operator."""


def render_project(clusters: Mapping[str, Cluster]) -> str:
    """The text of the file with what the project shall have. Raises CatalogueError."""
    wanted = wanted_project(list(clusters.values()), (OPERATORS,))
    resources = [
        {"kind": each.kind, "url": each.url, "create": each.collection, "query": each.query, "body": each.body}
        for each in wanted.resources
    ]
    rights: dict[str, list[str]] = {}
    for grant in wanted.grants:
        rights.setdefault(f"{grant.role} on {grant.on}", []).append(grant.member)
    found = {"project": wanted.project, "services": wanted.apis, "resources": resources, "rights": rights}
    return json.dumps(found, indent=1) + "\n"
