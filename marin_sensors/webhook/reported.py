"""What a sensor has reported: the cursor of the sensors that post what they find."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from marin_sensors.webhook.outbox import SentMessages


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The findings of the last tick, and what was sent of all."""

    keys: frozenset[str] = frozenset()
    """Of the findings of the last tick."""
    last: str = ""
    """The last one that was new, and when: "A job is starved: train/a, 2026-01-31 12:00 UTC"."""
    told: SentMessages = field(default_factory=SentMessages)

    @classmethod
    def parse(cls, text: str | None, warn: Callable[[str], object]) -> Reported:
        """What earlier ticks have reported; nothing for another text, of which `warn` gets a sentence."""
        if not text:
            return cls()
        try:
            found = json.loads(text)
            if "told" not in found:  # as `failures` wrote it once
                return cls(told=SentMessages.parse(text))
            told = SentMessages.parse(json.dumps(found["told"]))
            return cls(keys=frozenset(found.get("keys", ())), last=str(found.get("last", "")), told=told)
        except (ValueError, KeyError, TypeError, AttributeError):
            warn(f"The cursor {text!r:.100} is none of this sensor: it begins again, and reports all findings again.")
            return cls()

    def after(self, found: Mapping[str, str], now_s: float) -> Reported:
        """What is reported after a tick that has found these: key -> title, the newest last."""
        new = [title for key, title in found.items() if key not in self.keys]
        at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now_s))
        return replace(self, keys=frozenset(found), last=f"{new[-1]}, {at}" if new else self.last)

    def sentence(self) -> str:
        """When something new was found last, for the sensor's page."""
        return f"The last new one: {self.last}." if self.last else "Nothing new so far."

    def text(self) -> str:
        return json.dumps({"keys": sorted(self.keys), "last": self.last, "told": json.loads(self.told.text())})
