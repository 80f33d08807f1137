"""Rival trainers of title vectors, with the same titles, tokens and number of dimensions."""
