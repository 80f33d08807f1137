"""The command line: one file per command or command group."""
