"""The answers of evaluations: an index of each file of them, and the questions that several evaluations share.

samples    an evaluation, and where its answers are
index      what a file has, in little memory: the question of each row by its digest, scores, place
join       questions that all evaluations answered, joined by their texts
patterns   who is right: counts, and the questions of a pattern
texts      the texts of a question and of its answers, cut
"""
