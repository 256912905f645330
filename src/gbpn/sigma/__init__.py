"""What sigma rests on: measurements held out, and confidence without the pattern of the heads."""
