"""Does the protocol hold? Random runs in virtual time, and one very long run."""
