"""One file for each thing that a curator asks for."""
