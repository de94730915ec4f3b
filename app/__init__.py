"""The composition root: the window, and the same lab without a screen."""
