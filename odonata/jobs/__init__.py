"""Jobs and their scheduler: what both fidelities share."""
