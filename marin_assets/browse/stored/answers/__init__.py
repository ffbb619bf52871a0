"""The answers of evaluations: an index of each file of them, and the questions that several evaluations share.

samples    an evaluation, and the file of its answers
index      the rows of a file, in little memory: the question of each by its digest, its scores, its place
join       questions that all evaluations answered, joined by their texts
patterns   right and wrong answers: counts, and the questions of a pattern
texts      the texts of a question and of its answers, cut
"""
