"""Measurement of a plan on every machine of a Dask cluster. Needs the package `distributed`."""
