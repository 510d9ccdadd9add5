"""Small random-weight versions of published architectures, to try the tracer on."""
