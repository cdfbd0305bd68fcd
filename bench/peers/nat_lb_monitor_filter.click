// A NAPT, a load balancer by hash, a counter of each flow's packets, a filter, behind one flow manager. The load balancer
// updates no checksum, and the counter counts no bytes. The filter's rules are those of the bench's file `servers`.
@SOURCE@ -> MarkIPHeader(14) -> FlowIPManager_DPDK(CAPACITY @CAPACITY@)
  -> FlowIPNAT(203.0.113.1)
  -> FlowIPLoadBalancer(VIP 192.0.2.1, LB_MODE hash, DST 198.51.100.11, DST 198.51.100.12, DST 198.51.100.13, DST 198.51.100.14)
  -> FlowCounter
  -> filter :: IPFilter(
  drop dst port 23,
  drop tcp && dst port 25,
  allow dst host 198.51.100.11 && udp && dst port 443,
  allow dst host 198.51.100.12 && udp && dst port 443,
  allow dst host 198.51.100.13 && udp && dst port 443,
  allow dst host 198.51.100.14 && udp && dst port 443,
  allow dst net 198.51.100.8/29 && tcp && dst port 80,
  allow dst net 198.51.100.8/29 && tcp && dst port 443,
  drop all)
  -> @SINK@
