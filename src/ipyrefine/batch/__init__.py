"""Many tasks at once, and many texts for one task, side by side."""
