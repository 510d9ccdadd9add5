"""One file per check; each has a `CHECK`. The registry finds them by looking into this folder."""
