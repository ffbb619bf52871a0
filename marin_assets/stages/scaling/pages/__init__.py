"""The plots and the pages of fits. Labels of strangers are escaped in pages, and plain text in plots."""
