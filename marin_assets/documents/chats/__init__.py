"""Rows as chats and preferences: what the stages of conversations and of tokens share.

not_a_chat    why a row is none
messages      a message, the rules by which a turn becomes one
tools         calls and definitions of tools
forms         the shapes of rows: which columns a chat is in
adapters      rows of these shapes as chats, by name, and the keys that are not read
preferences   rows as pairs of chats, by name
"""
