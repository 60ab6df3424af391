"""Scripts that run inside the sandbox; they import the standard library only."""
