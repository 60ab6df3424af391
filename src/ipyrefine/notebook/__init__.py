"""The notebook surface: the magic, its session, the panel, and putting text into cells."""
