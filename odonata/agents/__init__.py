"""What lives in the machine. A packet's life, in reading order: `packet` (what it is), `traffic` and
`node` (it is made), `router` (arrive, route), `link` (wait, send), `node` again (taken in);
`network` puts them together as a model for the engine, and `audit` holds it to its laws."""
