"""Small documents about a lake that does not exist, so that nothing is right by accident."""

from datetime import date

from openassay.testing import make_document

QUESTION = "How large is Lake Marrow and why did it shrink?"

SURVEY = make_document(
    "Lake Marrow covered 412 square kilometres in 2019. The survey office measured the area of Lake Marrow with sonar. "
    "Lake Marrow shrank because a long drought dried up the river Tamsel. "
    "The survey office did not detect any leak in the bed of Lake Marrow.",
    title="Survey of Lake Marrow", url="https://survey.example/marrow", published=date(2020, 3, 1),
)  # fmt: skip
GAZETTE = make_document(
    "Fishermen on the northern shore speak of better years. According to the water board, Lake Marrow covered 412 "
    "square kilometres in 2019. The town of Ostrey draws its drinking water from wells.",
    title="The shores of Lake Marrow", url="https://gazette.example/shores", published=date(2021, 6, 1),
)  # fmt: skip
GUIDE = make_document(
    "Visitors reach Lake Marrow by train from Ostrey. The ferry on Lake Marrow runs from May to October and carries "
    "60 passengers. Lake Marrow freezes over in most winters.",
    title="Travel guide to Lake Marrow", url="https://guide.example/marrow", published=date(2022, 1, 1),
)  # fmt: skip
LAKE = (SURVEY, GAZETTE, GUIDE)
