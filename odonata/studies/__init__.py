"""Studies of published work, one folder each: its cases, its claims, its figures."""
