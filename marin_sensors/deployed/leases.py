"""Outputs that are left half made, because their worker is gone. Reported to the webhook of MARIN_WEBHOOK_URL."""

import os

from marin_sensors.stale_leases import stale_leases

leases = stale_leases(ui=os.environ.get("MARIN_UI_URL", ""))
