"""The findings that a sensor has reported: the cursor of the sensors that send messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from marin_sensors.webhook.outbox import SentMessages


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The findings of the last tick, and all messages that were sent."""

    keys: frozenset[str] = frozenset()
    """The keys of the findings of the last tick."""
    last: str = ""
    """The last one that was new, and when: "A job is starved: train/a, 2026-01-31 12:00 UTC"."""
    sent: SentMessages = field(default_factory=SentMessages)

    @classmethod
    def parse(cls, text: str | None, warn: Callable[[str], object]) -> Reported:
        """The findings that earlier ticks have reported; nothing for another text, of which `warn` gets a sentence."""
        if not text:
            return cls()
        try:
            fields = json.loads(text)
            if "told" not in fields:  # as `failures` wrote it once
                return cls(sent=SentMessages.parse(text))
            sent = SentMessages.parse(json.dumps(fields["told"]))
            return cls(keys=frozenset(fields.get("keys", ())), last=str(fields.get("last", "")), sent=sent)
        except (ValueError, KeyError, TypeError, AttributeError):
            warn(f"The cursor {text!r:.100} is none of this sensor: it begins again, and reports all findings again.")
            return cls()

    def after(self, findings: Mapping[str, str], now_s: float) -> Reported:
        """The findings that are reported after a tick with these `findings`: key -> title, the newest last."""
        new = [title for key, title in findings.items() if key not in self.keys]
        at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now_s))
        return replace(self, keys=frozenset(findings), last=f"{new[-1]}, {at}" if new else self.last)

    def sentence(self) -> str:
        """When something new was found last, for the sensor's page."""
        return f"The last new one: {self.last}." if self.last else "Nothing new so far."

    def text(self) -> str:
        return json.dumps({"keys": sorted(self.keys), "last": self.last, "told": json.loads(self.sent.text())})
