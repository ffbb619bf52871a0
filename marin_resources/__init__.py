"""Storage of outputs, and execution of tasks. It knows outputs and tasks, not steps.

May import Dagster, Ray and fsspec; neither marin_assets nor marin_sensors.
"""
