"""Lines of JSON: the lines of a file, and the row of a line."""
