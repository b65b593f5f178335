"""What is declared of a table and its release; nothing here reads a table."""
