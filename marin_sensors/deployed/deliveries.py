"""Text that arrives in the inbox becomes partitions of the experiment `deliveries`; what is missing is made at night.

Both are off until they are switched on, on the page *Automation* of Dagster's UI: their runs cost what the steps cost.
"""

from marin_sensors.drops.completeness import Marked
from marin_sensors.new_raw_data import new_raw_data
from marin_sensors.nightly_backfill import nightly_backfill

ASSETS = ["deliveries/raw", "deliveries/documents", "deliveries/tokenized"]

arrivals = new_raw_data(
    "new_deliveries",
    "{prefix}/inbox/help/{drop}/*.jsonl.gz",
    partitions="deliveries",
    assets=ASSETS,
    complete=Marked("_SUCCESS"),
)
nightly = nightly_backfill("nightly_backfill", ASSETS, cron="0 2 * * *")
