"""The command `marin`: `verbs/` has a file for each verb, `render/` what several files print.

May import `marin_assets.run`, the packages below it, and `marin_resources`; nothing imports it.
"""
