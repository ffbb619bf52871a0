"""Checks of the paths of a graph's outputs: each has a folder of its own, and none is below another output."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from marin_assets.step.values import ConfigError, require_inside
from marin_resources.types.places import split_scheme

OWN_FOLDER, EXPERIMENTS = ".marin", "experiments"
"""Folders below the prefix that are no outputs."""


def require_override(override: object, name: str) -> None:
    """Raise ConfigError unless the override of the output of step `name` is the path of a folder of its own."""
    if not isinstance(override, str) or not override.strip("/. "):
        raise ConfigError(
            f"Step {name!r} has override_output_path={override!r}, expected a path such as 'kept/pages'. Leave it None "
            "for the hashed path."
        )
    require_inside(override, f"Step {name!r}")
    scheme, rest = split_scheme(override)
    absolute = bool(scheme) or rest.startswith(("/", "~"))
    hidden = next((part for part in rest.split("/") if part.startswith(".") and part != "."), None)
    if hidden == OWN_FOLDER or (hidden is not None and not absolute):
        raise ConfigError(
            f"Step {name!r} has override_output_path={override!r}, in which {hidden!r} is a folder of control files: "
            "names with a leading dot are no data. Give a path such as 'kept/pages'."
        )
    if not absolute and posixpath.normpath(override) == EXPERIMENTS:
        raise ConfigError(
            f"Step {name!r} has override_output_path={override!r}, the folder where each run writes the file of its "
            "experiment. Give a path such as 'kept/pages'."
        )


def refuse_overlaps(located: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigError if two outputs are at one place, or one lies inside another. `located`: path, step's name.

    Paths are all below one prefix, or all relative to it.
    """
    places: dict[str, str] = {}
    for path, name in located:
        scheme, separator, rest = path.rpartition("://")
        place = scheme + separator + posixpath.normpath(rest)
        if place in places:
            raise ConfigError(
                f"The outputs of the steps {places[place]!r} and {name!r} would both be at {place!r}. Give one of them "
                "another output path."
            )
        places[place] = name
    for place, name in places.items():
        for above in _folders_above(place):
            if above in places:
                raise ConfigError(
                    f"The output of step {name!r} at {place!r} would lie inside that of step {places[above]!r} at "
                    f"{above!r}, which owns all files below it. Give one of them another output path."
                )


def _folders_above(place: str) -> Iterator[str]:
    above = posixpath.dirname(place)
    while above and above != place:
        yield above
        place, above = above, posixpath.dirname(above)
