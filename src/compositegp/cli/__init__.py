"""The command line: `compositegp forecast`, `regress`, `analyze`, `stream`, `reproduce` and `info`."""
