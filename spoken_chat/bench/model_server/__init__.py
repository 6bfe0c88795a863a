"""What a model server's flags are worth: several servers, started with different flags, measured by the same turns."""
