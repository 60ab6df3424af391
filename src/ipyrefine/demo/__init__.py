"""The demonstration: its task, the recording of it, and what runs it."""
