"""Turning files and pages into clean text: untrusted bytes in, sanitised documents out."""
