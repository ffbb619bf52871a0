"""Histograms of rows: the numbers, lengths and categories of their values, and the bins of these."""
