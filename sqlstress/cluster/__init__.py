"""A plan on every host of a Dask cluster. Needs the package `distributed`."""
