// Only what all others do as well: copying a frame into a packet.
@SOURCE@ -> @SINK@
