"""Output formats: one module a model family."""
