"""Fakes that only the tests of this repository use; those for everybody are in openassay.testing."""
