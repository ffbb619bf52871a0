"""Stages that fit scaling laws to finished runs: the loss by parameters and tokens, and task scores by the loss.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
