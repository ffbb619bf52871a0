"""The stages: each is a config dataclass and a plain function. One folder for each kind of work.

A stage may import marin_assets.{documents,step} and marin_resources; not Dagster, Ray or another stage.
"""
