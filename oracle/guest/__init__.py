"""The process of a device: what it may do there, and how it ends."""
