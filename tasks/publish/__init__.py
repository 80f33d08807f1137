"""Stage publish: draws the map and plots, packs and registers the model, and writes the report."""
