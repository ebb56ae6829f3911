"""The process of a device: how it is started, called and ended, and how it reports errors."""
