"""NumPy indexing over rows on disk."""
