"""A thread's state as people and programs look at it: what is kept by id is shown in full, and none of it is endless.

It can be looked at whenever: before there is a plan, while a question is open, when all is done or has failed. What
cannot be read is left out, and counted.
"""

from assay.view.records import StateView
from assay.view.shown import MOST
from assay.view.state import view

__all__ = ["MOST", "StateView", "view"]
