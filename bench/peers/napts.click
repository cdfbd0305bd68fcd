// @N@ NAPTs in a row behind one flow manager, which looks each packet's flow up once for all of them.
elementclass Translate { $public | input -> FlowIPNAT($public) -> output }
@SOURCE@ -> MarkIPHeader(14) -> FlowIPManager_DPDK(CAPACITY @CAPACITY@) -> @CHAIN Translate(203.0.113.%d)@ -> @SINK@
