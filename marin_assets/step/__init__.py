"""Identity: steps, the values in their configs, their versions and their graph.

May import marin_resources.{output,hardware,wire}. No I/O, no Dagster.
"""
