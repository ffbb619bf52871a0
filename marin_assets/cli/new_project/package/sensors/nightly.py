"""The experiment `first`, computed each night; what has not changed is reused. Off until switched on in the UI."""

import dagster as dg

nightly = dg.ScheduleDefinition(name="first_each_night", job_name="first", cron_schedule="0 3 * * *")
