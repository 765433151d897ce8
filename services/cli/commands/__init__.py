"""The subcommands of `feedmill`."""
