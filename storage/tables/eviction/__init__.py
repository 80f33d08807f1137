"""Eviction policies choose the rows that are always cached, and the slots that are reused first."""

from storage.tables.eviction.frequency_prefix import FrequencyPrefix
from storage.tables.eviction.least_frequent import LeastFrequentlyUsed

Eviction = FrequencyPrefix | LeastFrequentlyUsed
DEFAULT_EVICTION = FrequencyPrefix()
