"""The difference of two outputs by the ids of their rows: which are added, removed and changed, and where they are."""
