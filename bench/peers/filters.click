// @N@ filters in a row, each with rules of its own. They can be compiled by click-fastclassifier.
@SOURCE@ -> MarkIPHeader(14) -> @FILTERS@ -> @SINK@
