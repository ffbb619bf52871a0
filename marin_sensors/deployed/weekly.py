"""A page each Monday: the runs of the week, their costs, and what is unsynced. Off until it is switched on."""

import os

from marin_sensors.weekly_report import weekly_report

report, every_monday = weekly_report(ui=os.environ.get("MARIN_UI_URL", ""))
