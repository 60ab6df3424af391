"""The loop: records, events and an engine, on the standard library and pydantic alone."""
