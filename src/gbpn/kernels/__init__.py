"""What fast operations share: which are here, their memory, how they are launched and checked."""
