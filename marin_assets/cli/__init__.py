"""The command `marin`: `verbs/` has a file for each verb, `render/` what several files print.

May import `marin_assets.run`, the rooms below it, and `marin_resources`; nothing imports it.
"""
