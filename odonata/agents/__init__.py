"""What lives in the machine.

A packet's life, in reading order: `packet` (what it is), `traffic` and `node` (it is made),
`router` (it arrives, and its way is chosen), `link` (it waits, and is sent), `node` again
(it is taken in). `network` puts them together as a model for the engine, and `audit` holds it to
its laws.
"""
