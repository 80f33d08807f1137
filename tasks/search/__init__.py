"""What a person asks of a model: similar titles, and why."""
