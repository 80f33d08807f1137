"""``guidespace serve``: what ``similar`` and ``explain`` answer, over HTTP, by the model that serves."""
