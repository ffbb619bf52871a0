"""Equal units in files of rows: hashes, groups of equal hashes, and which one is kept. For texts and for chats."""
