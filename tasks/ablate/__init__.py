"""Ablation: measures the effect of each building block of the model by training without the block."""
