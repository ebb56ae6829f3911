"""What a catalogue covers, how much its goldens tell, what its cases cost."""
