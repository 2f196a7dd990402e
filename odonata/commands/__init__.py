"""The command line: one file per command, named by `cli`.

Nothing heavy is imported before a command runs; `options` holds what several commands share.
"""
