"""The links of a page that a server shows beside the data: to outputs, to logs, and back. A page in a file has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def _nowhere(path: str) -> str:
    return ""


class Addresses:
    """Addresses of the server that shows a page. The scrubber of the page leaves them as they are."""

    def __init__(
        self,
        output: Callable[[str], str] = _nowhere,
        log: Callable[[str], str] = _nowhere,
        trail: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`output`, `log`: path -> the address of the output's or the log's page; "" without one. `trail`: names and
        addresses of the pages above this one."""
        self._output, self._log, self.trail = output, log, tuple(trail)
        self._given = {address for _, address in trail}

    def output(self, path: str) -> str:
        """The address of the output at this path; "" if it has no page."""
        return self._give(self._output(path) if path else "")

    def log(self, path: str) -> str:
        """The address of the log at this path; "" if it has no page."""
        return self._give(self._log(path))

    @property
    def given(self) -> frozenset[str]:
        """All addresses that were given so far."""
        return frozenset(self._given)

    def _give(self, address: str) -> str:
        if address:
            self._given.add(address)
        return address
