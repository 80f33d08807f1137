"""One trial of an ablation."""
