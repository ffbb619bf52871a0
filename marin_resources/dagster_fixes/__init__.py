"""Repairs of Dagster: every class of Dagster that is replaced or extended, and every private name of it that is used.

May import the ground floor of marin_resources, storage, and Dagster. No other package imports a private name of
Dagster: a test holds that. One file is one repair; its docstring names the version of Dagster and the failure without
it.

Each of Dagster's processes imports this package by the classes that `dagster.yaml` names, before it reads a variable:
so the file with settings is read here.
"""

from marin_resources.configuration.check import load_settings_or_exit

load_settings_or_exit()
