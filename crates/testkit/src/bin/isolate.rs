//! Starts the processes of isolated functions for tests, which run in threads and cannot do so.

fn main() -> std::io::Result<()> {
    braid_testkit::harness::register_natives();
    let code = braid_native::isolated::launch(|_| Ok(()))?;
    std::process::exit(code)
}
