"""Chats and preferences become token caches with a mask of what is learnt: the assistant's tokens.

messages      a message, and why a row is no chat
adapters      rows of known shapes as chats, by name
preferences   rows of known shapes as pairs of chats, by name
templates     chat templates, by name; a chat as parts of text, in the loss or not
encoder       chats as tokens with their mask
window        what fits into a training sequence, and what is cut
tokenize_rows rows to caches, shard by shard: what the two stages share
tokenize_chats, tokenize_preferences   the stages
"""
