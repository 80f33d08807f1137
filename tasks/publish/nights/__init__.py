"""Nights side by side: how far tonight's space is from the last one, and the page of the last thirty."""
