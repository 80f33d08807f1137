"""Stage publish: map, plots, served model, registry and report."""
