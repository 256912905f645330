"""The studio: a page in the browser, and an HTTP interface, over sessions. `gbpn studio`, `gbpn serve`."""
