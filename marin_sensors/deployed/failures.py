"""Posts failures to the webhook of MARIN_WEBHOOK_URL. Without that variable the sensor is switched off."""

import os

from marin_sensors.failures import failures

on_failure = failures(ui=os.environ.get("MARIN_UI_URL", ""))
