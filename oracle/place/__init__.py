"""The place where a case runs: this process, with the device in one of its own, or a cluster."""
