"""The console command. Ranks know of each other before anything that takes time is imported."""

from pdes import watchman


def main() -> None:
    mine = watchman.begin()
    from odonata.commands.cli import main as command

    try:
        command()
    except SystemExit as ending:
        if mine and ending.code:
            mine.leave_failed(ending.code if isinstance(ending.code, int) else 1)
        raise


if __name__ == "__main__":
    main()
