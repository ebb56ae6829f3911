"""The run record: its schema and types, its writer, its reader."""
