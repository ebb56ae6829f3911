"""The run record: its words, its writer, its reader."""
