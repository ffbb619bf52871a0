"""The complete outputs below a prefix, in few files: markers of outputs and partitions, and packs of records.

An index for plans and for people. It is written after the output, and a run reads the status of what it reuses.
"""
