"""The command `marin`, one file for each verb, and the entry point of experiment scripts.

May import `marin_assets.plan`, `assets`, `step` and `marin_resources`; only `definitions` and experiments import it."""
