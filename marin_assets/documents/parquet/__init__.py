"""Files of parquet: their rows, a page of them, and rows written.

columns   the words for a column that a file does not have
read      all rows, some rows, the number of rows
write     rows in row groups
"""
