"""Results of verbs as lines and as JSON. A verb collects them, and prints them.

May import `marin_assets.cli.hint`, `marin_assets.inspection`, the packages below it, and `marin_resources`.
"""
