"""Assay over HTTP: the API, live events, and doors for other tools. Everything goes through the engine.

serving.py opens the premises and runs uvicorn; app.py puts the routes together; access.py says who may do what.
"""
