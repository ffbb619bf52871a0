"""Rows of a file at an offset, whatever its format; their filters, samples and search."""
