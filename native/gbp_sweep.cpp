namespace gbpn::GBPN_LEVEL {
}
