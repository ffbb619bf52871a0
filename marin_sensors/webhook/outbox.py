"""Send messages: each once, several as one, and not more than so many posts an hour."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from marin_sensors.webhook.message import Message

SINGLE = 3
"""So many are sent one by one; more are sent as a list."""
HOUR_S = 3600.0
REMEMBERED = 500
"""Ids of messages that were sent last."""


@dataclass(frozen=True, kw_only=True)
class SentMessages:
    """The messages that were sent, for the sensor's cursor."""

    since_s: float = 0.0
    """Events before this time are not sent."""
    ids: tuple[str, ...] = ()
    posts_s: tuple[float, ...] = ()
    """When the posts of the last hour were sent."""

    @classmethod
    def parse(cls, text: str) -> SentMessages:
        fields = json.loads(text)
        return cls(since_s=fields["since_s"], ids=tuple(fields["ids"]), posts_s=tuple(fields["posts_s"]))

    def text(self) -> str:
        return json.dumps(asdict(self))


def send(
    sent: SentMessages,
    messages: Iterable[Message],
    now_s: float,
    per_hour: int,
    post: Callable[[Sequence[Message]], None],
) -> tuple[SentMessages, int, Exception | None]:
    """Send new messages. Return all that were sent, the number that wait for the next hour, and the error of a post."""
    sent_ids = set(sent.ids)
    new = [message for message in messages if message.id not in sent_ids]
    posts = [[message] for message in new] if len(new) <= SINGLE else [new]
    ids, sent_s = list(sent.ids), [at_s for at_s in sent.posts_s if now_s - HOUR_S < at_s <= now_s]
    for number, chunk in enumerate(posts):
        if len(sent_s) >= per_hour:
            return _updated(sent, ids, sent_s), sum(map(len, posts[number:])), None
        try:
            post(chunk)
        except Exception as error:  # handed to the caller, who reports it; what was sent before counts as sent
            return _updated(sent, ids, sent_s), 0, error
        sent_s.append(now_s)
        ids += [message.id for message in chunk]
    return _updated(sent, ids, sent_s), 0, None


def _updated(sent: SentMessages, ids: Sequence[str], sent_s: Sequence[float]) -> SentMessages:
    return SentMessages(since_s=sent.since_s, ids=tuple(ids[-REMEMBERED:]), posts_s=tuple(sent_s))
