"""All settings in one table, the file that may hold them, and their check when a process starts.

May import the package `types`. What checks a setting is named in the table, and imported if the setting is set.
"""
