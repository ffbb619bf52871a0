"""Encoders of text: models of the BERT family, from the folder of a Hugging Face export, without torch."""
