"""The classes of wrong and right kernels."""
