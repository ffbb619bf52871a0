"""Problems of the jobs on the cluster, reported to the webhook of MARIN_WEBHOOK_URL; nothing without a cluster."""

import os

from marin_sensors.orphaned_jobs import orphaned_jobs

orphans = orphaned_jobs(ui=os.environ.get("MARIN_UI_URL", "")) if os.environ.get("MARIN_CLUSTER") else None
