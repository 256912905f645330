"""`python -m gbpn`, the same as `gbpn`."""

from gbpn.cli import main

main()
