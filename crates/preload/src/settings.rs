//! What is Braid's, by the environment.

use std::env::var_os;
use std::path::PathBuf;
use std::sync::OnceLock;

/// What is Braid's.
#[derive(Debug)]
pub struct Settings {
    /// The path of Braid's socket.
    pub socket: PathBuf,
    /// The ports that Braid serves; `None`: all.
    ports: Option<Vec<u16>>,
}

impl Settings {
    /// The settings of this process. `None` if Braid has no socket for it.
    pub fn of_process() -> Option<&'static Self> {
        static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
        SETTINGS.get_or_init(Self::of_environment).as_ref()
    }

    fn of_environment() -> Option<Self> {
        let socket = var_os("BRAID_SOCKET").filter(|path| !path.is_empty())?.into();
        let ports = var_os("BRAID_PORTS").map(|ports| {
            let ports = ports.to_string_lossy();
            ports.split(',').filter_map(|port| port.trim().parse().ok()).collect()
        });
        Some(Self { socket, ports })
    }

    /// Whether Braid serves a port. Port 0 stands for any free one, which the kernel chooses.
    pub fn has(&self, port: u16) -> bool {
        port != 0 && self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }
}
