"""Other trainers of title vectors (rivals), with the same titles, tokens and number of dimensions."""
