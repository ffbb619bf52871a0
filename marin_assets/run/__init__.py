"""A script, or a plan, carried out: the entry point of scripts, their options, runs here and in the queue.

May import `marin_assets.inspection`, `assets`, the packages below them, and `marin_resources`. Scripts enter here, and
the command `marin` is built on it.
"""
