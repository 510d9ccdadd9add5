"""HTML of ours: elements, the look of offline pages, and what notebooks show. It knows nothing of what is shown."""
