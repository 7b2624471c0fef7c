"""`python -m openassay` is `openassay`."""

from openassay.cli import main

if __name__ == "__main__":
    main()
