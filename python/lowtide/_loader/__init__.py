"""The training loader: what it reads, in which structure, and the batches it delivers."""
