"""Language models: from a prompt to an answer that is paid for once.

    router.py     which model is asked, and what happens when it does not answer
    lineup.py     the models of a run, by role
    account.py    every call through the ledger
    breaker.py    a provider that keeps failing is left alone for a while
    quoting.py    what a run will probably cost, before it starts
    tracing.py    calls shown in LangSmith, if the environment asks for it
    names.py      "vendor:model", its key, its address, and whether it runs on this machine
    prices.py     what a call costs, and what it can cost at most
    vendors/      one adapter per wire format, on the vendors' own SDKs
    local.py      a .gguf file served in a process of its own
    nearby.py     model servers that happen to run on this machine

Only tracing.py asks the environment, through LangSmith, and no SDK is imported before a model is asked.
"""
