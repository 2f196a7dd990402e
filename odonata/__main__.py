from odonata.commands.cli import main

main()
