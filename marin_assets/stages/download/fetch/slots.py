"""Addresses of servers, each with one connection at a time: hosts with the same address share its turns.

A host waits at an address that another one visits; the end of that visit wakes the first of those that wait. So an
address that is free has a host on its way to it, if any waits there. The frontier serializes the calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

H = TypeVar("H")
HELD = 200_000
"""Addresses that are remembered, beyond those in use."""


@dataclass(eq=False, slots=True)
class Slot(Generic[H]):
    """One address."""

    next_s: float = 0.0
    """When it may be visited next, by the monotonic clock."""
    is_busy: bool = False
    waiting: deque[H] = field(default_factory=deque)


class Slots(Generic[H]):
    """The turns of addresses."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot[H]] = {}

    def ready_s(self, host: H, addresses: Sequence[str]) -> float | None:
        """When a host with these addresses may be visited; None if it waits at one that is busy."""
        slots = [slot for address in addresses if (slot := self._slots.get(address)) is not None]
        busy = next((slot for slot in slots if slot.is_busy), None)
        if busy is not None:
            busy.waiting.append(host)
            return None
        return max((slot.next_s for slot in slots), default=0.0)

    def occupy(self, addresses: Sequence[str], now_s: float) -> bool:
        """Begin a visit of all addresses, or of none if one is busy or not due."""
        slots = [self._slots.get(address) or Slot() for address in addresses]
        if any(slot.is_busy or slot.next_s > now_s for slot in slots):
            return False
        if len(self._slots) >= HELD:
            self._forget(now_s)
        for address, slot in zip(addresses, slots, strict=True):
            slot.is_busy = True
            self._slots[address] = slot
        return True

    def leave(self, addresses: Sequence[str], next_s: float) -> None:
        """End a visit; the next is at `next_s` or later."""
        for address in addresses:
            slot = self._slots[address]
            slot.is_busy, slot.next_s = False, next_s

    def awakened(self, addresses: Sequence[str]) -> list[H]:
        """Take the first host that waits at each of the addresses that are free."""
        slots = [slot for address in addresses if (slot := self._slots.get(address)) is not None]
        return [slot.waiting.popleft() for slot in slots if slot.waiting and not slot.is_busy]

    def _forget(self, now_s: float) -> None:
        for address, slot in list(self._slots.items()):
            if not slot.is_busy and not slot.waiting and slot.next_s <= now_s:
                del self._slots[address]
