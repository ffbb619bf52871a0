"""Storage of outputs, and execution of tasks. It knows outputs and tasks, not steps.

May import Dagster, Ray and fsspec; neither marin_assets nor marin_sensors.
"""

import sys

if not (3, 11) <= sys.version_info[:2] < (3, 13):  # in the syntax of every Python
    raise ImportError(
        "Marin requires Python 3.11 or 3.12, and "
        + sys.executable
        + " is Python "
        + ".".join(map(str, sys.version_info[:3]))
        + ". Start it with the Python of an environment that has one of them."
    )
