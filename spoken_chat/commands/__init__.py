"""The command line's commands: each module has `add_arguments(parser)` and `run(arguments, settings) -> exit status`."""
