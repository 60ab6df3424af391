"""One run as a person sees and steers it: driver, commands, record, export and history."""
