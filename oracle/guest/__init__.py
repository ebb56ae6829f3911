"""The process of a device: how it is started, asked and ended, and how it tells what went wrong there."""
