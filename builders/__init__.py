"""One door a source format: each module holds a Builder and names it BUILDER."""
