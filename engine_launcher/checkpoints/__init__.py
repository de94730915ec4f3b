"""The small models, made on this machine by scripts that run in the engine's environment."""
