"""`python -m gbpn.cli`, the same as `gbpn`."""

from gbpn.cli import main

main()
