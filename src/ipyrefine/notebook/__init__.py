"""The notebook surface: the magics, a cell's run, its panel, and where its text goes."""
