"""A message reaches its webhook, or its sender knows that it has not, against servers on loopback."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from webhooks import SECRET, Webhook, webhook_on_loopback

from marin_resources.host import webhook as module
from marin_resources.host.webhook import WebhookError, post, require_answer


@pytest.fixture
def hooks() -> Iterator[tuple[Webhook, Webhook]]:
    with webhook_on_loopback() as one, webhook_on_loopback() as other:
        yield one, other


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_webhook_behind_a_redirect_loses_no_message_in_silence(hooks: tuple[Webhook, Webhook], status: int) -> None:
    hook, other = hooks
    hook.status, hook.moved_to = status, other.url
    expected = "answered 303" if status == 303 else "redirects to 'http://127.0.0.1:"
    with pytest.raises(WebhookError, match=expected) as refused:
        post(hook.url, {"text": "x"})
    assert "The message is sent again later." in str(refused.value)
    assert SECRET not in str(refused.value)
    assert other.texts == []
    with pytest.raises(WebhookError, match=re.escape("where no message is sent. Set the variable to its address")):
        require_answer(hook.url)


def test_a_webhook_that_moves_within_its_origin_takes_messages(hooks: tuple[Webhook, Webhook]) -> None:
    hook, _ = hooks
    hook.status, hook.moved_to = 307, "/services/new"
    post(hook.url, {"text": "x"})
    assert hook.texts == ["x"]


@pytest.mark.timeout(60)
def test_a_webhook_that_drips_holds_a_tick_no_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.05)
            except OSError:
                connection.close()

        threading.Thread(target=drip, daemon=True).start()
        began_s = time.monotonic()
        with pytest.raises(WebhookError, match=re.escape("did not answer (no whole answer within 0.5 s). The message")):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/x", {"text": "x"})
        assert time.monotonic() - began_s < 20
