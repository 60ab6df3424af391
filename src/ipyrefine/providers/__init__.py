"""Models: OpenAI-compatible servers, the embedded one, and a scripted test double."""
