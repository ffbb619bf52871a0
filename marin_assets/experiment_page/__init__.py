"""One publishable HTML page about any experiment: complete, running, failed, or never run.

May import marin_assets.inspection and the packages below it; not Dagster or Ray.
"""
