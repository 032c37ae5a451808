"""Other libraries, run from environments of their own."""
