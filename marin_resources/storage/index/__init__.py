"""Look at thousands of outputs by few requests, on the markers and packs of `storage/done`. It imports the store."""
