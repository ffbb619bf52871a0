"""The errors of a request: each has one sentence and the status of its response."""

from __future__ import annotations

from marin_resources.types.errors import MarinError


class BrowseError(MarinError):
    """A request that has no page: one sentence."""

    status = 404


class NotThereError(BrowseError):
    """Nothing exists at the place, or the address is none."""


class NotShownError(BrowseError):
    """The place is outside of the prefixes that are shown."""

    status = 403


class UnreadableError(BrowseError):
    """A file that exists cannot be read: it is damaged, or of another format."""

    status = 422


class NotComparableError(BrowseError):
    """Outputs that exist cannot be shown side by side."""

    status = 422


class LimitError(BrowseError):
    """A limit of the request was reached."""

    status = 503
