"""``guidespace serve``: the answers of ``similar`` and ``explain`` over HTTP, from the champion model."""
