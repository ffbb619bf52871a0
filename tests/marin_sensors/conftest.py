"""A webhook on loopback, to which the sensors send."""

from collections.abc import Iterator

import pytest
from webhooks import Webhook, webhook_on_loopback


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    with webhook_on_loopback() as webhook:
        monkeypatch.setenv("MARIN_WEBHOOK_URL", webhook.url)
        yield webhook
