"""The command line's commands: each has `add_arguments(parser)` and `run(arguments, settings) -> exit status`."""
