"""The command ``mirror``: one file per subcommand. Parses arguments, prints, maps failures to exit codes."""
