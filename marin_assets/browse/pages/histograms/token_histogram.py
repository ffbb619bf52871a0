"""The histogram of the tokens of the rows of a token cache."""

from __future__ import annotations

from marin_assets.browse.pages.histograms.charts import chart_of, scale_of
from marin_assets.browse.query import address
from marin_assets.browse.rows.histogram.bins import SCALES
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.token_lengths import token_lengths

MOST_DRAWN = 100_000


def token_histogram(asked: Asked) -> Shown:
    """The histogram of tokens of the rows of a token cache."""
    place, scale, seed = asked.place(), scale_of(asked.query), asked.query.number("seed")
    count = asked.query.number("rows", MOST_DRAWN, most=MOST_DRAWN) or MOST_DRAWN
    read = token_lengths(asked.places, place, count=count, seed=seed)
    first: dict[int, int] = {}
    for length, row in zip(read.lengths, read.rows, strict=True):
        first.setdefault(length, row)
    lengths = sorted(first)

    def row_of(least: float, most: float) -> str:
        row = min(first[length] for length in lengths if least <= length <= most)
        return address("tokens", path=place.text, row=row)

    facts = {
        "place": place,
        "owner": asked.owner(place),
        "read": read,
        "seed": seed,
        "chart": chart_of("tokens", read.lengths, True, scale, row_of, []) if read.lengths else None,
        "scale": scale,
        "scales": SCALES,
        "tokens": sum(read.lengths),
    }
    return Shown(template="token_histogram", facts=facts)
