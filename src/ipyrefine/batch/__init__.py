"""Many tasks at once, here or in an executor; and many texts for one task, side by side."""
