//! Panics: each one is a bug, said as such, with an exit code of its own.

use std::panic::PanicHookInfo;

use crate::answer::BUG;

/// Makes every panic, on any thread, end the process with [`BUG`] and a line for a report.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{}", report(info));
        std::process::exit(i32::from(BUG));
    }));
}

fn report(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |at| format!(" at {at}"));
    let message = info.payload_as_str().unwrap_or("no message");
    format!(
        "braid {version}: a bug{place}: {message}\n\
         Please report this line with the command and, if you can, its files.",
        version = env!("CARGO_PKG_VERSION")
    )
}
