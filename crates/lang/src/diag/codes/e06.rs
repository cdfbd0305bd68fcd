//! E06xx: files and importers.

codes! {}
