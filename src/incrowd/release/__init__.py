"""What a release is, and how anyone checks it; shares no code with what makes one."""
