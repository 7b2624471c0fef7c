"""One file for each noun of the API; each has a `router`, and app.py lists them."""
