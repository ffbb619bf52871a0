"""The data that are copied into the region of a cluster before a step is called there."""

from __future__ import annotations

from marin_resources.ray_tpu.site import Site
from marin_resources.storage.output.record import NAME as RECORD
from marin_resources.storage.paths import join
from marin_resources.wire.config_json import Json, plain, texts_in


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
