// @N@ routers in a row.
@SOURCE@ -> MarkIPHeader(14) -> @CHAIN Router@ -> @SINK@
