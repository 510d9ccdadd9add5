"""A trace as a page: whatever has the public interface of `endoscope.trace(…)` is read here, and never changed."""
