"""Starts, resumes, answers, shows and compares runs; every front end calls it."""
