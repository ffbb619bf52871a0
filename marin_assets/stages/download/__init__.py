"""Raw data: what comes from outside, copied or made once and never changed."""
