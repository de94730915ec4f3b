"""KV-cache arithmetic."""
