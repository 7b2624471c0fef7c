"""What is kept of a run so that it can go on: LangGraph's checkpoints in our own tables, and the journal beside them.

saver        a LangGraph checkpointer on Assay's database
moments      what a checkpoint tells of itself without being opened
snapshots    a checkpoint as readable JSON, and back
recorder     copies each run into its journal
restoration  has a run again from its journal alone
"""
