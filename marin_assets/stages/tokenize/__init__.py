"""Documents to tokens: a tokenizer trained on them, and the caches that training reads."""
