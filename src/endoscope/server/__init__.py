"""The web page's other half: serves recordings over HTTP, on this machine, without torch."""
