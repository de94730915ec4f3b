"""How far reported arrival times are from the truth: the lab, and others, against one server."""
