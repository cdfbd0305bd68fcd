// A router at its leanest: no checksum is verified, one next hop.
elementclass Router {
  input -> GetIPAddress(IP dst)
        -> table :: DirectIPLookup(@ROUTES@)
        -> DecIPTTL
        -> EtherRewrite(02:00:00:00:01:00, 02:00:00:00:02:00)
        -> output
}
