"""The structure of a step: learned by tracing, found again by its signature."""
