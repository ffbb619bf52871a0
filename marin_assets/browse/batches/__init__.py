"""The sequences that a step of a training has read: drawn in a process of its own, and the documents in them.

question      a question to the process, and its answer
draw          the process: Levanter draws the sequences again (it imports jax)
drawer        starts it, under the limits of a request
documents     the rows of a token cache that a sequence is from
"""
