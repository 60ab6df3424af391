"""Language models: OpenAI-compatible servers, the embedded model, recordings and a test double."""
