"""Eviction policies: which rows are always cached, and which slots are reused first (docs/offload.md)."""

from storage.tables.eviction.frequency_prefix import FrequencyPrefix
from storage.tables.eviction.least_frequent import LeastFrequentlyUsed

Eviction = FrequencyPrefix | LeastFrequentlyUsed
DEFAULT_EVICTION = FrequencyPrefix()
