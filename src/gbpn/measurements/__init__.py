"""What a measurement is: where there is one, its unit, whether it agrees with the others."""
