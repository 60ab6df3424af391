"""The journal: every run's events in one SQLite database, written before they are shown."""
