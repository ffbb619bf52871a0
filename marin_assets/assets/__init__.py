"""Steps as Dagster assets: definitions, the body of each asset, its checks and metadata, and runs of them.

May import marin_assets.{plan,step}, marin_resources and Dagster.
"""
