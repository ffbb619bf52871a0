"""Shards of many zstd frames with an index of their rows at the end: write them, and read any rows of a file.

layout        the bytes of the index
writer        rows into frames, and the index behind them
index         the index of a shard, read from its end
pages         some rows of a file, its number of rows, the row of an id
id_table      the table of the ids of all shards of an output
id_merge      that table, written when the shards are
id_search     an id in a file without an index of ids
"""
