"""Qt lives here."""
