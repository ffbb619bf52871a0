"""A report of some days: runs, assets and costs, as tables and as a page.

May import the rest of marin_sensors, marin_resources and Dagster."""
