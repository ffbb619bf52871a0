"""Problems of the jobs on the cluster, reported to the webhook of MARIN_WEBHOOK_URL; nothing without a cluster."""

import os

orphans = None
if os.environ.get("MARIN_CLUSTER"):
    from marin_sensors.orphaned_jobs import orphaned_jobs

    orphans = orphaned_jobs(ui=os.environ.get("MARIN_UI_URL", ""))
