"""The expansion of a catalogue file to cases."""
