"""Stages that find and replace personal data and secrets in documents.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
