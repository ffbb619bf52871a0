"""Models at work: engines that compute logits and text, in this process or as servers beside it.

Its modules import no Dagster and no Ray; of marin_assets they import step and documents. A
server ends with the step that started it.
"""
