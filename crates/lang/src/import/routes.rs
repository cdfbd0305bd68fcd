//! Reads route tables, with one `PREFIX [NEXT-HOP]` on each line.

use super::addr::{Prefix, prefix};
use super::cursor::each_line;
use super::error::ImportErrors;
use braid_ir::routes::RouteTable;

/// The most lines with routes in a file.
pub(crate) const MAX_ROUTES: usize = 8 << 20;

/// Reads a route table. A line without a next hop has next hop 0. Of two lines with the same
/// prefix, the later one counts. Host bits are ignored.
///
/// # Errors
/// All lines that cannot be used.
pub fn routes(text: &str) -> Result<RouteTable, ImportErrors> {
    let mut table = RouteTable::default();
    let mut count = 0;
    let errors = each_line(text, |_, line| {
        let word = line.word();
        count += 1;
        if count > MAX_ROUTES {
            return Err(word.fault(format!("at most {MAX_ROUTES} routes")));
        }
        let prefix = prefix(word)?;
        let hop = line.rest();
        let hop = if hop.text.is_empty() || hop.text.starts_with('#') {
            0
        } else {
            line.word().number("a next hop number", u32::MAX)?
        };
        line.end("the end of the line after the next hop")?;
        match prefix {
            Prefix::V4(addr, length) => table.insert4(addr, length, hop),
            Prefix::V6(addr, length) => table.insert6(addr, length, hop),
        }
        Ok(())
    });
    errors.finish(table)
}

#[cfg(test)]
mod tests {
    use super::routes;

    #[test]
    fn longest_prefix_gives_the_hop_and_default_hop_is_0() {
        let table = routes("10.0.0.0/8 1\n10.1.0.0/16 2 # lab\n192.0.2.0/24\n2001:db8::/32 7\n");
        let table = table.expect("good lines");
        assert_eq!(table.len(), 4);
        assert_eq!(table.lookup4(0x0a01_0001), Some(2));
        assert_eq!(table.lookup4(0x0a02_0001), Some(1));
        assert_eq!(table.lookup4(0xc000_0209), Some(0));
        assert_eq!(table.lookup4(0x0b00_0001), None);
        assert_eq!(table.lookup6(0x2001_0db8 << 96), Some(7));
    }

    #[test]
    fn later_line_replaces_and_host_bits_are_ignored() {
        let table = routes("10.0.0.0/8 1\n10.9.9.9/8 2\n").expect("good lines");
        assert_eq!((table.len(), table.lookup4(0x0a00_0001)), (1, Some(2)));
    }

    #[test]
    fn bad_lines_are_errors_at_their_place() {
        let errors = routes("10.0.0.0/8 -1\n10.0.0.0/8 1 2\n10.0.0.0/8 4294967296\nx\n")
            .expect_err("bad lines");
        let places: Vec<_> = errors.errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(1, 12), (2, 14), (3, 12), (4, 1)]);
    }
}
