"""Maps with a memory ceiling."""
