"""Files of every store, and on top of them the store of outputs, their leases and the mirror between regions.

May import `wire`, `drift` and the ground floor (`output`, `settings`, …); never Ray, Dagster or steps.
"""
