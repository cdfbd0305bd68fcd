//! Starts the processes of isolated functions for tests, which run in threads and cannot do so.

fn main() -> std::io::Result<()> {
    braid_native_five::register();
    braid_relay::register();
    let code = braid_native::isolated::launch(|_| Ok(()))?;
    std::process::exit(code)
}
