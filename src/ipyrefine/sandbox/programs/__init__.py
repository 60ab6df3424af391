"""Scripts that run inside the sandbox, without this package."""
