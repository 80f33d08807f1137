"""Where embedding rows and their optimizer state live, a family: a table answers where, a rule how a row moves."""

from storage.tables.resident import Resident

__all__ = ["Resident", "Table"]

Table = Resident
