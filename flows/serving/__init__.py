"""Serves the answers of the commands ``similar`` and ``explain`` over HTTP (``guidespace serve``)."""
