"""What NumPy computes over an array on disk, block by block."""
