"""Decisions only: a policy is asked and answers; it never touches the engine."""
