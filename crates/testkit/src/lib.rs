//! Test support: generators of functions, chains and traffic, filetests, packet builder, trace comparison.
#![forbid(unsafe_code)]
