"""Where outputs are stored and how tasks run. It knows outputs and tasks, and no steps.

May import Dagster, Ray and fsspec; never `marin_assets` or `marin_sensors`.
"""
