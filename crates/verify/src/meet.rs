//! Whole packets: merges them where paths join, compares them, and copies them.

use std::collections::{BTreeMap, BTreeSet};

use braid_ir::residual::HeaderMask;
use braid_packet::{Field, Header};

use crate::packet::{Kind, Packet, Tag};
use crate::sums::{SUMS, Sum};
use crate::term::{Sort, Term, Terms};

impl Packet {
    /// Chooses one of several packets: the first whose condition holds, otherwise the last.
    pub(crate) fn choose(terms: &mut Terms, from: &[(Term, &Packet)]) -> Packet {
        let Some(((_, last), others)) = from.split_last() else {
            return Packet::arriving(terms, HeaderMask { care: 0, present: 0 });
        };
        let mut chosen = (*last).clone();
        for (cond, packet) in others.iter().rev() {
            chosen = chosen.or_if(terms, *cond, packet);
        }
        chosen
    }

    fn or_if(&self, terms: &mut Terms, cond: Term, other: &Packet) -> Packet {
        let mut fields: BTreeSet<Field> = self.cells.keys().copied().collect();
        fields.extend(other.cells.keys());
        let mut cells = BTreeMap::new();
        for field in fields {
            let (a, b) = (other.cell(terms, field), self.cell(terms, field));
            cells.insert(field, terms.ite(cond, a, b));
        }
        let mut names: BTreeSet<&String> = self.tags.keys().collect();
        names.extend(other.tags.keys());
        let mut tags = BTreeMap::new();
        for name in names {
            let (a, b) = (other.tag(terms, name), self.tag(terms, name));
            tags.insert(name.clone(), terms.ite(cond, a, b));
        }
        let vlans = other.vlans.iter().zip(&self.vlans).map(|(a, b)| Tag {
            present: terms.ite(cond, a.present, b.present),
            tpid: terms.ite(cond, a.tpid, b.tpid),
            pcp: terms.ite(cond, a.pcp, b.pcp),
            dei: terms.ite(cond, a.dei, b.dei),
            id: terms.ite(cond, a.id, b.id),
        });
        let vlans = vlans.collect();
        let mut sums = self.sums;
        for (mine, theirs) in sums.iter_mut().zip(other.sums) {
            *mine = terms.ite(cond, theirs, *mine);
        }
        Packet {
            cells,
            tags,
            vlans,
            grown: terms.ite(cond, other.grown, self.grown),
            sums,
            backward: terms.ite(cond, other.backward, self.backward),
            held: terms.ite(cond, other.held, self.held),
        }
    }

    /// The value of a tag.
    pub(crate) fn tag(&self, terms: &mut Terms, name: &str) -> Term {
        match self.tags.get(name) {
            Some(value) => *value,
            None => terms.var(format!("tag {name}"), Sort::Bits(128)),
        }
    }

    /// The equalities that make two packets equal, each with its name. `tags` decides whether tags
    /// count.
    pub(crate) fn same(
        &self,
        terms: &mut Terms,
        other: &Packet,
        tags: bool,
    ) -> Vec<(String, Term)> {
        let mut found = Vec::new();
        let mut fields: BTreeSet<Field> = self.cells.keys().copied().collect();
        fields.extend(other.cells.keys());
        for field in fields {
            let (a, b) = (self.cell(terms, field), other.cell(terms, field));
            found.push((field.info().name.to_owned(), terms.eq(a, b)));
        }
        for (place, (a, b)) in self.vlans.iter().zip(&other.vlans).enumerate() {
            let parts = [(a.tpid, b.tpid), (a.pcp, b.pcp), (a.dei, b.dei), (a.id, b.id)];
            let equal: Vec<_> = parts.iter().map(|(a, b)| terms.eq(*a, *b)).collect();
            let (equal, absent) = (terms.and(&equal), terms.not(a.present));
            let content = terms.or(&[absent, equal]);
            let both = terms.eq(a.present, b.present);
            found.push((format!("VLAN tag {}", place + 1), terms.both(both, content)));
        }
        for ((a, b), (_, name)) in self.sums.iter().zip(other.sums).zip(SUMS) {
            found.push((format!("whether {name} is brought up to date"), terms.eq(*a, b)));
        }
        found.push(("length".to_owned(), terms.eq(self.grown, other.grown)));
        if tags {
            let mut names: BTreeSet<&String> = self.tags.keys().collect();
            names.extend(other.tags.keys());
            for name in names {
                let (a, b) = (self.tag(terms, name), other.tag(terms, name));
                found.push((format!("tag {name}"), terms.eq(a, b)));
            }
        }
        found.retain(|(_, equal)| terms.decided(*equal) != Some(true));
        found
    }

    /// The whole packet as one token. Copies and answers are made from it.
    pub(crate) fn image(&self, terms: &mut Terms) -> Term {
        let written: Vec<_> = braid_packet::FIELDS
            .iter()
            .filter(|info| info.access == braid_packet::Access::Rw)
            .map(|info| self.cell(terms, info.field))
            .collect();
        let mut parts = written;
        for tag in &self.vlans {
            parts.extend([tag.present, tag.tpid, tag.pcp, tag.dei, tag.id]);
        }
        parts.extend(self.sums);
        parts.push(self.grown);
        terms.apply("packet", &parts, Sort::Token)
    }

    /// The payload, including the writable fields in it.
    pub(crate) fn payload(&self, terms: &mut Terms, kind: &Kind, parsed: &Packet) -> Term {
        use Field::{
            QuotedDport, QuotedId, QuotedIp6Dst, QuotedIp6Src, QuotedIp6Ttl, QuotedIpDst,
            QuotedIpId, QuotedIpSrc, QuotedIpTos, QuotedIpTtl, QuotedSport,
        };
        let fields = [
            QuotedIpSrc,
            QuotedIpDst,
            QuotedIpTos,
            QuotedIpId,
            QuotedIpTtl,
            QuotedIp6Src,
            QuotedIp6Dst,
            QuotedIp6Ttl,
            QuotedSport,
            QuotedDport,
            QuotedId,
        ];
        let mut parts: Vec<_> = fields.iter().map(|field| self.cell(terms, *field)).collect();
        parts.extend([self.sums[Sum::QuotedIp as usize], self.sums[Sum::QuotedTransport as usize]]);
        parts.push(kind.has(terms, parsed, Header::Vxlan));
        parts.push(kind.has(terms, parsed, Header::Geneve));
        terms.apply("payload", &parts, Sort::Token)
    }
}
