"""Fill in a template of infra/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marin_resources.clusters.cluster import CatalogueError


def fill(folder: Path, name: str, **values: Any) -> str:
    """The text of the template with these values. Raises CatalogueError."""
    import jinja2  # late, for its weight

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    try:
        return environment.get_template(name).render(**values).lstrip("\n")
    except jinja2.TemplateNotFound:
        raise CatalogueError(f"The template {str(folder / name)!r} does not exist. Restore it from git.") from None
    except jinja2.TemplateError as error:
        raise CatalogueError(f"The template {str(folder / name)!r} cannot be rendered: {error}.") from None
