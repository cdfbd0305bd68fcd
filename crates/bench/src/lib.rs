//! Measures engines against each other and against floors.
