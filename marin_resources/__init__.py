"""WHERE it lives, HOW it runs: outputs, tasks, and the Dagster side of both. Steps and stages are unknown here.

May import Dagster, Ray, fsspec and other libraries; neither marin_assets nor marin_sensors.
"""
