"""Samplers: who answers the requests."""
