"""Jobs: their plans, their tasks, and what runs them."""
