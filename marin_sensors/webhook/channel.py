"""The webhook that a sensor sends its messages to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from marin_resources.host.webhook import WEBHOOK, WebhookError, post
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_sensors.webhook.message import Message, slack_json
from marin_sensors.webhook.outbox import SentMessages, send


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The result of sending in one tick."""

    sent: SentMessages
    """For the next tick."""
    waiting: int = 0
    """Messages that wait for the next hour."""
    error: Exception | None = None
    """Why a message could not be sent; it is sent again later."""

    @property
    def everything(self) -> bool:
        return self.error is None and not self.waiting

    def require(self) -> None:
        """Raise an error that is not the webhook's: a bug, which Dagster shows on the tick."""
        if self.error is not None and not isinstance(self.error, WebhookError):
            raise self.error

    def sentence(self) -> str:
        """A sentence about what was not sent; empty if all was sent."""
        return str(self.error) if self.error else f"{self.waiting} wait for the next hour." if self.waiting else ""


@dataclass(frozen=True)
class Channel:
    """The webhook of one sensor, which is a secret: it is named by a variable."""

    variable: str = WEBHOOK
    ui: str = ""
    """The address of Dagster's UI, for links."""
    per_hour: int = 20
    """Posts in an hour at most; more messages wait, and are then sent as one."""
    secrets: Sequence[str] = ()
    """Names of variables whose values no message shows."""

    @property
    def is_configured(self) -> bool:
        return bool(os.environ.get(self.variable))

    def message(self, id: str, title: str, sentence: str, *, run_id: str = "", log: Iterable[str] = ()) -> Message:
        """A message without secrets, with a link to the run."""
        return Message(
            id=id,
            title=title,
            sentence=self._redactor.text(sentence),
            link=f"{self.ui.rstrip('/')}/runs/{run_id}" if self.ui and run_id else "",
            log=[self._redactor.text(line) for line in log],
        )

    def send(self, sent: SentMessages, messages: Iterable[Message], now_s: float) -> Delivery:
        """Send what is new; nothing without a webhook."""
        if not self.is_configured:
            return Delivery(sent=sent)
        url = os.environ[self.variable]
        sent, waiting, error = send(sent, messages, now_s, self.per_hour, lambda chunk: post(url, slack_json(chunk)))
        return Delivery(sent=sent, waiting=waiting, error=error)

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(secrets_of([self.variable, *self.secrets]))
