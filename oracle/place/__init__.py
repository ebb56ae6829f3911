"""The place where a case runs: this process, a child process, a cluster."""
