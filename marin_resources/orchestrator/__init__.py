"""What Dagster runs: the executor's definition, the IO manager, the resources, and how one output is produced.

May import every other room of marin_resources, and Dagster.
"""

from marin_resources.configuration.check import load_settings_or_exit
from marin_resources.orchestrator.former_class_paths import register_former_class_paths

load_settings_or_exit()
register_former_class_paths()
