"""Problems of the jobs on the cluster. Reported to the webhook of MARIN_WEBHOOK_URL."""

import os

from marin_sensors.orphaned_jobs import orphaned_jobs

orphans = orphaned_jobs(ui=os.environ.get("MARIN_UI_URL", ""))
