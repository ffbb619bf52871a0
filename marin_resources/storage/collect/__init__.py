"""Free storage: withdraw outputs that nothing needs, bring them back, and remove their data after a grace time.

May import `output` and the packages below it. The caller decides what is needed (`marin_assets/inspection/gc`).
"""
