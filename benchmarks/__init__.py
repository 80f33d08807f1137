"""Claims about speed and quality, each with its rival in the same run."""
