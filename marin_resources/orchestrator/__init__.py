"""What Dagster runs: the executor, the IO manager, the resources, and how one output is produced.

May import every other room of marin_resources, and Dagster. Each of Dagster's processes imports this room by the
classes that `dagster.yaml` names, before it reads a variable: so the file with settings is read here.
"""

from marin_resources.configuration.check import load_settings_or_exit

load_settings_or_exit()
