"""What is copied into the region of a cluster before a step is called there."""

from __future__ import annotations

from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import Json, plain, texts_in


def copies_for(site: Site, config: Json) -> tuple[str, ...]:
    """The `mirror://` paths of what the config names and another region has, and of the records of these outputs, which
    some stages read. What the config reads through the mirror already is copied when it is read."""
    named = list(dict.fromkeys(texts_in(plain(config))))
    found = []
    for move in site.moves:
        here = join(site.prefix, move.relative)
        texts = [text for text in named if text == here or text.startswith(f"{here}/")]
        found += texts
        if texts and move.is_output:
            found.append(join(here, RECORD))
    return tuple(f"mirror://{path.removeprefix(site.prefix).strip('/')}" for path in dict.fromkeys(found))
