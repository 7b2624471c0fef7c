"""What Assay keeps, in SQLite or PostgreSQL.

    sqlite.py       Database: one file, its connections, transactions and migrations
    postgres.py     Database: a server; upgrade.py brings it to this version
    inspection.py   how a database stands                              `assay db`
    transfer.py     from one machine's SQLite into PostgreSQL
    documents.py    snapshots by content hash                          ports.DocumentStore
    threads.py      threads and their runs                             ports.ThreadStore
    events.py       what happened in a run, in order                   ports.EventLog
    ledger.py       every paid call, before it is made                 ports.Ledger
    caps.py         the rules of the ledger
    cache.py        what was asked or read before                      ports.Cache
    layers.py       its layer in the process; sqlite_cache.py and redis_cache.py are the others
    library.py      full-text index of one folder, a file of its own   ports.PassageIndex
    uploads.py      files people gave; files.py is where their bytes stand
    memories.py     what people want remembered, on PostgreSQL
    migrations/     main/, library/ and postgres/: numbered SQL files; one that was released never changes

Errors leave here as StorageError, with the path of the database and what to do next.
"""
