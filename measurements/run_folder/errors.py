"""What can be wrong with a run folder, said in one sentence."""


class RunFolderError(Exception):
    """A run folder cannot be made, read or exported; the message is for the person."""
