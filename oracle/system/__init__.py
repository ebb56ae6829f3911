"""This process and its machine: files read and written, the user's cache, environment variables, memory."""
