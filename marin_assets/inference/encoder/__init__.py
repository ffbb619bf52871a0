"""Encoders of text: BERT, ModernBERT, DeBERTa, GTE and others, from a Hugging Face folder, without torch."""
