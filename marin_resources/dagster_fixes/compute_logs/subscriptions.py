"""Logs that somebody has open in the UI: each is polled every 5 s, until it has ended.

Dagster's own poll (1.13.27) never reports that a log has ended, and its thread ends with the first error. No issue is
known; dagster-io/dagster#28110 repaired other ends of subscriptions. Without this, an open log stays "live".
"""

from __future__ import annotations

import logging
from typing import Any

from dagster._core.storage.cloud_storage_compute_log_manager import PollingComputeLogSubscriptionManager

POLL_S = 5.0

log = logging.getLogger(__name__)


class Subscriptions(PollingComputeLogSubscriptionManager):
    """Polls the logs that are open."""

    def _poll(self, shutdown_event: Any) -> None:
        while not shutdown_event.wait(POLL_S):
            for subscriptions in list(self._subscriptions.values()):
                for subscription in list(subscriptions):
                    try:
                        ended = self.is_complete(subscription)
                        subscription.fetch()
                    except Exception:  # of the observer, which may be gone: the others are still notified
                        log.exception("the subscriber of an open log could not be notified")
                        continue
                    if ended:
                        self.remove_subscription(subscription)
