"""Arrays, token files and ragged rows as the user holds them, and batches of one epoch."""
