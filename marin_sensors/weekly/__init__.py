"""What a report of some days says: what ran, what it cost, as tables and as a page.

May import the rest of marin_sensors, marin_resources and Dagster."""
