"""Definitions that Dagster runs: the executor, the IO manager and the resources; and the production of one output.

May import every other package of marin_resources, and Dagster.
"""

from marin_resources.configuration.check import load_settings_or_exit
from marin_resources.orchestrator.former_class_paths import register_former_class_paths

load_settings_or_exit()
register_former_class_paths()
