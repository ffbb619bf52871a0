"""The limits of a month for all steps below the prefix. Off until it is switched on. Put in your own."""

import os

from marin_sensors.budget import budget

month = budget("budget", dollars=1_000, transferred_gb=1_000, ui=os.environ.get("MARIN_UI_URL", ""), start=False)
