"""Load–latency curves: `sweep` simulates the points, `curves` shows them."""
