"""Stages that give an output to others.

May import marin_assets.inference, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
