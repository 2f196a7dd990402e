from odonata.cli import main

main()
