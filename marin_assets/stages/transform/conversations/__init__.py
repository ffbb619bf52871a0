"""Rows of chats and of preferences become documents that training reads.

conversations, preferences   the stages
fields        the fields of their configs that are alike, and how they are checked
structure     the order of roles, and what is changed in it
read_rows     a row as a document, or the reason why it is none
write_rows    all rows: equal ones once, shard by shard
threads       trees of messages as rows of chats, the stage before
"""
