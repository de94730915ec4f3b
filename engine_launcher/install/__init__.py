"""Sets up what the lab needs on this machine; standard library only, since it comes first."""
