"""The stage that applies attributes to documents, and accounts for everything that it removes.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
