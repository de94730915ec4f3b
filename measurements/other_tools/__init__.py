"""What other tools would report of the same raw events, each by its own rules; pure.

`docs/other-tools.md` has the rules side by side, and the versions that they were read in.
"""
