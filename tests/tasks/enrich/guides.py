"""Programmes of toy guides."""

import re

ADDED = re.compile(rb"\s*<category>[^<]*</category>")
MARKED = re.compile(ADDED.pattern + rb"<!-- guidespace [0-9.]+ -->")
BAKING = "Harbour kitchen baking"  # the toy world has it
NEW = "Nowhere murders detectives"  # and lacks this one


def programme(title: str, more: str = "", channel: str = "one", start: str = "20250301200000") -> str:
    """Returns a programme with ``more`` after its title."""
    times = f'start="{start} +0000" stop="20250301210000 +0000"'
    return f'<programme {times} channel="{channel}"><title>{title}</title>{more}</programme>'
