"""A plan as people and programs read it: groups, text, JSON, a page."""
