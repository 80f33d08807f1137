"""Finds the nearest neighbours of vectors, exactly, approximately, or by SimHash signatures."""
