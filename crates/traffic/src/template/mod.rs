//! Traffic from templates: captures of single conversations, and a YAML file with the connections a
//! second of each conversation and the addresses of clients and servers.
//!
//! The file has the format of the TRex generator's stateful mode: `cap_info` (`name`, `cps`, `ipg`,
//! `rtt`, `w`, `limit`, `one_app_server`, `server_addr`), `generator` (`distribution`,
//! `clients_start` …), `cap_ipg`, `cap_ipg_min`, `cap_override_ipg`, `src_ipv6`, `dst_ipv6`,
//! `duration`.

mod config;
mod conversation;
mod expand;
mod locate;
mod options;
mod tuples;

pub use expand::{MAX_CONNECTIONS, Template};
pub use options::Options;
pub(crate) use tuples::{FIRST_PORT, PORTS};

use crate::{Error, yaml};
use config::Config;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Template {
    /// Reads a template file and its captures. Also returns warnings about keys and packets that
    /// have no effect, and about templates that were left out.
    ///
    /// # Errors
    /// When the file or a capture can't be used, or the options can't be met.
    pub fn open(file: &Path, options: &Options) -> Result<(Self, Vec<String>), Error> {
        if !(options.scale > 0.0 && options.scale <= 1e6) {
            return Err(Error::Options("the scale must be above 0 and at most 1000000".into()));
        }
        let mut warnings = Vec::new();
        let mut config = Config::parse(&read(file)?, &mut warnings).map_err(Error::Template)?;
        let roots = locate::roots(file, options.captures.as_deref());
        let mut paths = Vec::with_capacity(config.entries.len());
        let mut missing = Vec::new();
        config.entries.retain(|entry| match locate::find(&entry.name, &roots) {
            Ok(path) => {
                paths.push(path);
                true
            }
            Err(why) => {
                missing.push(why);
                false
            }
        });
        if options.skip_missing && !paths.is_empty() {
            warnings.extend(missing.iter().map(|why| format!("left out: {why}")));
        } else if !missing.is_empty() {
            missing.dedup();
            let hint = if paths.is_empty() { "" } else { "; --skip-missing leaves them out" };
            return Err(Error::Missing(format!("{}{hint}", missing.join("\n"))));
        }
        let conversations = load(&paths, &mut warnings)?;
        let mut template = Template::new(config, conversations, options)?;
        template.captures = paths;
        Ok((template, warnings))
    }

    /// The captures that the template file names.
    #[must_use]
    pub fn captures(&self) -> &[PathBuf] {
        &self.captures
    }
}

/// The file's text, unless it is too long.
fn read(file: &Path) -> Result<String, Error> {
    let name = || file.display().to_string();
    let open = File::open(file)
        .map_err(|why| Error::Capture { file: name(), why: format!("cannot be read: {why}") })?;
    let mut bytes = Vec::new();
    open.take(yaml::MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|why| Error::Capture { file: name(), why: format!("cannot be read: {why}") })?;
    String::from_utf8(bytes).map_err(|_| Error::Template("the file is no UTF-8 text".to_owned()))
}

/// Loads each capture once, even if several templates use it.
fn load(
    paths: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<Vec<Arc<conversation::Conversation>>, Error> {
    let mut known = BTreeMap::new();
    let mut room = conversation::MAX_BYTES;
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        if !known.contains_key(path) {
            let loaded = conversation::load(path, &mut room, warnings)?;
            known.insert(path, Arc::new(loaded));
        }
        all.extend(known.get(path).cloned());
    }
    Ok(all)
}
