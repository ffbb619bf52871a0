"""Pages of histograms: of rows, of tokens; their charts, and the rows near a threshold."""
