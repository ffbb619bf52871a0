"""The webhook that gets failures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from marin_resources.doctor.finding import Finding, ok, warning, wrong
from marin_resources.host.webhook import WEBHOOK, WebhookError, post, require_answer

SUBJECT = "webhook"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MESSAGE = "marin doctor: this is a test. Nothing is broken."


def look(*, with_message: bool = False) -> Iterator[Finding]:
    """`with_message` sends a test message: only then is it known that the webhook takes one."""
    url = os.environ.get(WEBHOOK, "")
    if not url:
        yield ok(SUBJECT, f"none: nobody gets a message when it breaks ({WEBHOOK} is not set)")
        return
    try:
        host = require_answer(url)
        if with_message:
            post(url, {"text": MESSAGE})
    except WebhookError as error:
        yield wrong(SUBJECT, _with_advice(str(error)))
        return
    if urlsplit(url).scheme == "http" and host not in LOOPBACK:
        yield warning(SUBJECT, f"Messages to {host!r} travel unencrypted, and its address is a secret. Use https.")
    taken = "has taken a test message" if with_message else "answers; `marin doctor --message` sends it a test message"
    yield ok(SUBJECT, f"{host} {taken}")


def _with_advice(sentence: str) -> str:
    """Replace the advice for a run, which sends the message again; a person corrects the address."""
    for advice in (" The message is sent again later.", " Correct the variable."):
        sentence = sentence.replace(advice, f" Correct {WEBHOOK}.")
    return sentence
