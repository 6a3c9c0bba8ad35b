"""Jobs: their plans, their tasks, and who runs them."""
