"""Text files to documents: archives, formats and parts of files.

May import marin_assets.documents, marin_assets.step and marin_resources."""
