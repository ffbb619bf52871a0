"""Free storage: withdraw outputs that nothing needs, bring them back, and remove their data after a grace time.

May import `output` and the rooms below it. What needs an output is for the caller to know (`marin_assets/plan/gc`).
"""
