"""Many tasks at once: in this process, in a pool of others, or on a Dask cluster."""
