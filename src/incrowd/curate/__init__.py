"""What a curator asks for before and beside a release."""
