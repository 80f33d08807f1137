"""Strings to vectors, read character by character: a recurrent network over a table of character rows, and
the loop that trains both. torch and NumPy alone.
"""
