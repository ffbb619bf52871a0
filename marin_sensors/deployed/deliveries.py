"""Text that arrives in the inbox becomes partitions of `text_deliveries`; what is missing is computed at night.

Both are off until they are switched on, on the page *Automation* of Dagster's UI: their runs cost what the steps cost.
A project of one's own that does not have the shipped experiments has neither.
"""

from marin_resources.configuration.code_packages import SHIPPED_EXPERIMENTS, experiment_packages

ASSETS = ["text_deliveries/raw", "text_deliveries/documents", "text_deliveries/tokenized"]

arrivals = nightly = None
if SHIPPED_EXPERIMENTS in experiment_packages():
    from marin_sensors.deliveries.completeness import Marked
    from marin_sensors.new_raw_data import new_raw_data
    from marin_sensors.nightly_backfill import nightly_backfill

    arrivals = new_raw_data(
        "new_deliveries",
        "{prefix}/inbox/help/{drop}/*.jsonl.gz",
        partitions="deliveries",
        assets=ASSETS,
        complete=Marked("_SUCCESS"),
    )
    nightly = nightly_backfill("nightly_backfill", ASSETS, cron="0 2 * * *")
