"""The command line: commands, options, tables and the progress of a run."""
