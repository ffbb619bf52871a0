"""The page of an experiment, made now from its record: that of `marin page`, with links to the data and to the logs."""

from __future__ import annotations

import base64
import hashlib
import re

from marin_assets.browse.errors import LimitError
from marin_assets.browse.places import Places
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, WholePage
from marin_assets.browse.stored.experiments import MOST_RECORD_BYTES
from marin_assets.experiment_page.addresses import Addresses
from marin_assets.experiment_page.from_record import steps_of_file
from marin_assets.experiment_page.page import page_of
from marin_assets.experiment_page.record_file import prefix_of, read_record_file
from marin_resources.storage.files import stored_file

MOST_STEPS = 5_000
MOST_CHARACTERS = 1_000_000
"""Characters of all names and functions of a record's steps, which the page repeats."""
LOG_BYTES = 100_000
"""The part of a log that its link leads to, at its end."""
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
POLICY = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""The page has its one style, and the plots inside it. Nothing is loaded, and no script runs."""


def experiment(asked: Asked) -> WholePage:
    places = asked.places
    place, stored = asked.file()
    if stored.size_bytes > MOST_RECORD_BYTES:
        raise LimitError(
            f"The record has {stored.size_bytes:,} bytes, and the limit is {MOST_RECORD_BYTES:,}. Write its page with "
            "`marin page` on a machine that reads the prefix."
        )

    def shows(path: str) -> bool:
        return places.text_of(path) is not None

    own = prefix_of(place.path)
    file = read_record_file(place.path, own if own and shows(own) else place.prefix)
    if len(file.steps) > MOST_STEPS:
        raise LimitError(
            f"The record has {len(file.steps):,} steps, and the limit is {MOST_STEPS:,}. Write the page of some of "
            "them with `marin page RECORD SELECTION`."
        )
    characters = sum(len(step.name) + len(step.function) for step in file.steps)
    if characters > MOST_CHARACTERS:
        raise LimitError(
            f"The names and functions of the record have {characters:,} characters, and the limit is "
            f"{MOST_CHARACTERS:,}. Look at the file: it was not written by a run."
        )
    steps = steps_of_file(file, shows=shows, writes=False)
    html = page_of(steps, addresses_of(places))
    style = STYLE.search(html)
    digest = hashlib.sha256(style[1].encode() if style else b"").digest()
    return WholePage(html=html, policy=POLICY.format(digest=base64.b64encode(digest).decode()))


def addresses_of(places: Places) -> Addresses:
    """The links of the page: to what is shown, and no more."""

    def output(path: str) -> str:
        text = places.text_of(path)
        return "" if text is None else address("output", path=text)

    def log(path: str) -> str:
        text = places.text_of(path)
        try:
            start = max(0, stored_file(path).size_bytes - LOG_BYTES)
        except OSError:
            return ""
        return "" if text is None else f"{address('file', path=text, start=start or '')}#end"

    return Addresses(output, log, trail=[("outputs", address("")), ("experiments", address("experiments"))])
