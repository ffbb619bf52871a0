"""The catalogue of clusters: infra/clusters.toml, read and checked. A sentence about it names file, cluster and key."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from marin_resources.clusters.checks import NAME, check_addresses, check_cluster, check_keys, check_regions, read_slices
from marin_resources.clusters.cluster import CatalogueError, Cluster, find_slice_type_or_raise
from marin_resources.configuration.settings import SettingError, normalize_prefix, project_root
from marin_resources.hardware.catalogue import find_generation

VARIABLE = "MARIN_CLUSTERS"


def default_path() -> Path:
    """The file of MARIN_CLUSTERS, else infra/clusters.toml of the checkout."""
    given = os.environ.get(VARIABLE, "").strip()
    return Path(given).expanduser() if given else templates() / "clusters.toml"


def templates() -> Path:
    """The folder with the templates."""
    return project_root() / "infra"


def read_catalogue(path: Path | None = None) -> dict[str, Cluster]:
    """Name -> cluster, in the order of the file. Raises CatalogueError."""
    path = path or default_path()
    try:
        about = path.stat()
        return dict(_read(path, about.st_mtime_ns, about.st_size, about.st_ino))
    except OSError as error:
        raise CatalogueError(
            f"The catalogue of clusters {str(path)!r} cannot be read ({error.strerror}). Set {VARIABLE} to another one."
        ) from None


@lru_cache(maxsize=16)
def _read(path: Path, *changed: int) -> dict[str, Cluster]:
    """The catalogue as of its last change: each step of a run reads it."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise CatalogueError(
            f"The catalogue of clusters {str(path)!r} is no text. Set {VARIABLE} to another one."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"The catalogue of clusters {str(path)!r} is no TOML: {error}.") from None
    clusters = read.pop("clusters", {})
    if not isinstance(clusters, dict) or not clusters:
        raise CatalogueError(f"{path}: no cluster. Add a table [clusters.NAME] with zone, prefix and generation.")
    catalogue = {name: _cluster(path, name, read, fields) for name, fields in clusters.items()}
    check_addresses(path, catalogue)
    check_regions(path, catalogue)
    return catalogue


def find_cluster(name: str, path: Path | None = None) -> Cluster:
    """The cluster of that name. Raises CatalogueError."""
    clusters = read_catalogue(path)
    if name not in clusters:
        near = difflib.get_close_matches(name, clusters, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise CatalogueError(
            f"No cluster {name!r} in {path or default_path()}, expected one of {', '.join(clusters)}.{meant}"
        )
    return clusters[name]


def cluster_with(kind: str, name: str | None = None, path: Path | None = None) -> Cluster:
    """The cluster of that name, or the only one whose slices may be of this type. Raises CatalogueError."""
    slice_type = find_slice_type_or_raise(kind)
    clusters = read_catalogue(path).values() if name is None else [find_cluster(name, path)]
    able = [
        candidate
        for candidate in clusters
        if find_generation(candidate.generation) == slice_type.generation and candidate.zone in slice_type.zones
    ]
    if len(able) == 1:
        return able[0]
    if name is not None:
        [cluster] = clusters
        raise CatalogueError(
            f"The cluster {name!r} is in {cluster.zone} and has slices of {cluster.generation}, so it has no {kind}. "
            f"Zones with it: {', '.join(slice_type.zones)}."
        )
    if not able:
        raise CatalogueError(f"No cluster can have {kind}. Zones with it: {', '.join(slice_type.zones)}.")
    raise CatalogueError(
        f"Which cluster shall have {kind}? --cluster {' or '.join(candidate.name for candidate in able)}."
    )


def _cluster(path: Path, name: str, defaults: Mapping[str, Any], fields: Any) -> Cluster:
    where = f"{path}: [clusters.{name}]"
    if not NAME.fullmatch(name):
        raise CatalogueError(
            f"{where}: got the name {name!r}, expected up to 40 small letters, digits and hyphens, a letter first."
        )
    if not isinstance(fields, dict):
        raise CatalogueError(f"{where}: got {fields!r}, expected a table of keys.")
    given = {**defaults, **fields}
    check_keys(where, given, Cluster, own={"name"})
    slices = given.pop("slices", [])
    if not isinstance(slices, list):
        raise CatalogueError(f"{where}: slices is {slices!r}, expected a list of tables.")
    given["prefix"] = _normalized(where, given["prefix"])
    cluster = Cluster(name=name, slices=tuple(read_slices(where, table) for table in slices), **given)
    check_cluster(where, cluster)
    return cluster


def _normalized(where: str, prefix: str) -> str:
    """Without a slash at its end: outputs, reports and the file of wanted slices are below it by one name."""
    if not prefix.startswith("gs://"):
        raise CatalogueError(f"{where}: prefix is {prefix!r}, expected one such as 'gs://marin-us-central2'.")
    try:
        return normalize_prefix(prefix)
    except SettingError as error:
        raise CatalogueError(f"{where}: prefix: {error}") from None
