// A firewall, a router, a NAPT. The filter can be compiled by click-fastclassifier.
@SOURCE@ -> MarkIPHeader(14) -> filter :: IPFilter(@FILTER@) -> Router
  -> FlowIPManager_DPDK(CAPACITY @CAPACITY@) -> FlowIPNAT(203.0.113.1) -> @SINK@
