"""Words from which the keys of needles are made: 1,600 pairs of an adjective and a noun."""

from __future__ import annotations

_ADJECTIVES = (
    "amber ancient azure brisk calm clever copper cosmic crimson curious distant eager early frozen gentle golden "
    "hidden hollow humble ivory jolly keen late lively lunar mellow misty nimble olive polite quiet rapid rustic "
    "scarlet silver solar sturdy tidy velvet windy"
)
_NOUNS = (
    "acorn anchor badger basket beacon bridge candle canyon castle cedar comet compass desert dolphin falcon feather "
    "forest garden glacier hammer harbor island kettle ladder lantern meadow mirror orchard otter pebble pocket ribbon "
    "river saddle teapot tunnel valley violin willow window"
)
ADJECTIVES, NOUNS = _ADJECTIVES.split(), _NOUNS.split()
