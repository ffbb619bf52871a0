"""The sections of a page, one file each: the facts that its template shows.

May import marin_assets.experiment_page.page_steps and sums, marin_assets.inspection and the packages below it.
"""
