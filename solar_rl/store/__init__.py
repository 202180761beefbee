"""Keep a dataset on disk: parquet tables, manifest, card, and the way back in."""
