"""The executor of a run: Dagster's own engine executes each step in a thread, and one event loop runs all coroutines.

May import the files of `marin_resources/dagster_fixes`.
"""
