"""What is wrong with this machine's settings, and what to do: one look a file, each by itself. `marin doctor` shows it.

It may import every other room of marin_resources; none imports it.
"""
