"""Renderings of a report. The structure in `model.report` is the report; everything here is a view of it."""
