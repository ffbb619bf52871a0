"""Refuse a plan that computes outputs where this user may not write, before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from marin_assets.plan.plan import Action, Planned
from marin_resources.configuration.settings import SettingError
from marin_resources.storage.filesystems.rights import ADVICE, nearest_folder, why_unwritable
from marin_resources.storage.output.notes import active_attempts
from marin_resources.storage.output.store import Store
from marin_resources.storage.paths import absolute, is_local, join


def refuse_unwritable(planned: Sequence[Planned], store: Store) -> None:
    """Raise SettingError if an output is to be computed, or brought back, and this user may not write it, or may not
    enter its attempt below the prefix."""
    why_not = cache(why_unwritable)
    refused = []
    for item in planned:
        if item.action is Action.RUN or item.observed.collected:
            places = (store.locate(item.node.output), join(store.prefix, active_attempts.FOLDER))
            folders = [nearest_folder(absolute(place)) for place in places if is_local(place)]
            if why := next(filter(None, map(why_not, folders)), ""):
                refused.append((item.label, why))
    if refused:
        label, why = refused[0]
        others = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise SettingError(f"{label!r}{others} cannot be computed: {why}. Nothing has started. {ADVICE}")
