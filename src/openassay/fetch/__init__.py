"""Fetches pages and documents through a guarded client and extracts their text."""
