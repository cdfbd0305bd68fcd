//! Synthesis: residual programs of small models and of the library's chains.

mod library;
