//! Decision structures: rule sets, route tables and sets made fast to look up.
