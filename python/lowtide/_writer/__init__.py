"""Arrays and token files that are being written."""
