"""HTML to Markdown: the marks that pass through the extraction, and the contents of kinds of pages.

May import marin_assets.documents, marin_assets.step and marin_resources."""
