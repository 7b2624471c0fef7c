"""What people want remembered: in LangGraph's Store on one machine, in the database where there are several.

    ("memory", user, "preferences")  "all"   their preferences
    ("memory", user, "facts")        "M3"    one fact
    ("memory", user)                 "last"  the highest number a fact has had, so that no id is given twice

Every item is named in full: two people share no namespace, whatever they are called.
"""
