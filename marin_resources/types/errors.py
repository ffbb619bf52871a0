"""The base of the errors that are shown to a person.

MarinError          every error whose text is one complete sentence
InvalidInputError   such an error about a person's input

A boundary (the command line, an asset, a sensor, the doctor) catches MarinError and shows the sentence without a
traceback. Any other exception is a bug, or an error of somebody else's code, and keeps its traceback. An exception that
only directs the flow of control, or whose text is a phrase that a sentence takes in, does not derive from it.
"""

from __future__ import annotations

from typing import Self


class MarinError(Exception):
    """An error whose text is one complete sentence for a person: what, the value, what was expected, what to do next.

    The second base of a subclass is for its callers: ValueError, OSError, TypeError.
    """

    place: str = ""
    """ "file:line" of a person's file with the mistake, where the traceback does not show it."""

    def at(self, place: str) -> Self:
        """Return this error with its place, unless it has one."""
        self.place = self.place or place
        return self

    def with_place(self) -> str:
        """Return the sentence, behind its place if that is known."""
        return f"{self.place}: {self}" if self.place else str(self)


class InvalidInputError(MarinError, ValueError):
    """Arguments, a setting, a config or a control file cannot be used. A command ends with 2, not with 1."""
