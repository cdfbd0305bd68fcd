//! Generates statements and the ends of a packet's path.

use super::expr::Exprs;
use super::pieces::{ParamKind, Per, Pieces, Scope};
use super::text::Text;
use super::types::{BOOL, IP4, U32, duration, literal, of_field, writable};
use crate::generate::Rng;
use braid_ir::model::{Kind, Ty};
use braid_packet::{Header, options};

/// Generates statements of one function.
pub(super) struct Stmts<'a> {
    /// The random choices.
    pub(super) rng: &'a mut Rng,
    /// The declarations of the function.
    pub(super) pieces: &'a Pieces,
    /// Number of names so far.
    pub(super) names: usize,
    /// Whether packets go back, or to the left or right by name. Both ports must then be linked.
    pub(super) both_sides: bool,
    /// Whether packets may be held in a queue.
    pub(super) queue: bool,
}

impl Stmts<'_> {
    /// Writes some statements and an end.
    pub(super) fn body(&mut self, text: &mut Text, scope: &mut Scope) {
        for _ in 0..self.rng.below(4) {
            self.statement(text, scope);
        }
        self.end(text, scope);
    }

    /// Writes the end of a packet's path.
    fn end(&mut self, text: &mut Text, scope: &Scope) {
        let line = match self.rng.below(24) {
            0..3 => "drop;".to_owned(),
            3..5 => format!("drop \"reason {}\";", self.rng.below(3)),
            5 => "consume;".to_owned(),
            6 => {
                self.both_sides = true;
                (*self.rng.pick(&["output back;", "output left;", "output right;"])).to_owned()
            }
            7 if self.rng.one_in(4) => "resubmit;".to_owned(),
            8..11 if !self.pieces.ports.is_empty() => {
                let port = self.rng.pick(&self.pieces.ports);
                format!("output {port};")
            }
            11 if self.queue && scope.depth < 3 => {
                format!("hold waiting for {} else drop \"queue full\";", duration(self.rng))
            }
            _ => "output;".to_owned(),
        };
        text.line(&line);
    }

    /// Writes one statement and updates `scope` for the code behind it.
    pub(super) fn statement(&mut self, text: &mut Text, scope: &mut Scope) {
        match self.rng.below(16) {
            0..5 => self.assign_field(text, scope),
            5..8 => self.assign_state(text, scope),
            8 => self.assign_tag(text, scope),
            9 => self.let_and_use(text, scope),
            10 | 11 if scope.depth < 3 => self.branch(text, scope),
            12 | 15 => self.emission(text, scope),
            13 if scope.has(&[Header::Tcp]) && self.rng.one_in(2) => self.option(text, scope),
            13 => self.vlan(text, scope),
            14 => self.emit(text, scope),
            _ if self.rng.one_in(3) => self.rounds(text, scope),
            _ => self.delete(text, scope),
        }
    }

    fn expr(&mut self, scope: &Scope, ty: Ty) -> String {
        let depth = self.rng.below(4);
        Exprs { rng: self.rng, pieces: self.pieces, scope }.any(ty, depth)
    }

    fn assign_field(&mut self, text: &mut Text, scope: &mut Scope) {
        let fields: Vec<_> = writable(&scope.headers).collect();
        let Some(field) = fields.get(self.rng.below(fields.len())).copied() else { return };
        let (name, ty) = (field.info().name, of_field(field));
        let steps = ty.kind == Kind::Uint && self.rng.one_in(4);
        if steps {
            let op = *self.rng.pick(&["+=", "-=", "&=", "|=", "^=", "+", "-"]);
            if let "+" | "-" = op {
                let amount = self.expr(scope, ty);
                text.line(&format!("{name} = wrapping({name} {op} {amount});"));
                return;
            }
            let step = self.rng.range(1, u64::try_from(ty.max()).unwrap_or(u64::MAX).min(7));
            text.line(&format!("{name} {op} {step};"));
        } else {
            let value = self.expr(scope, ty);
            text.line(&format!("{name} = {value};"));
        }
    }

    fn assign_state(&mut self, text: &mut Text, scope: &mut Scope) {
        let number = self.rng.below(self.pieces.states.len());
        self.assign(text, scope, number);
    }

    /// Assigns a state under its implicit key, or under a key of fields that are known to be
    /// present.
    pub(super) fn assign(&mut self, text: &mut Text, scope: &mut Scope, number: usize) {
        let Some(state) = self.pieces.states.get(number) else { return };
        let place = match &state.per {
            Per::Types(types) => {
                let key: Vec<_> = types.iter().map(|ty| self.expr(scope, *ty)).collect();
                format!("{}[{}]", state.name, key.join(", "))
            }
            per if scope.has(&per.needs()) => state.name.clone(),
            _ => return,
        };
        let value = match state.scalar() {
            Some(ty) => self.expr(scope, ty),
            None => {
                let parts: Vec<_> = state
                    .slots
                    .iter()
                    .map(|(name, ty)| format!("{name}: {}", self.expr(scope, *ty)))
                    .collect();
                format!("{{ {} }}", parts.join(", "))
            }
        };
        // An `else` is an error if the assignment cannot be refused.
        let known = scope.assigned.contains(&number) || scope.exists.contains(&number);
        let refused = match self.rng.below(3) {
            _ if state.per == Per::Global || !(state.refuses || state.tied) || known => "",
            0 => " else drop \"refused\"",
            1 => " else output",
            _ => "",
        };
        text.line(&format!("{place} = {value}{refused};"));
        // Any earlier entry may have been evicted.
        scope.exists.clear();
        scope.assigned.push(number);
    }

    fn assign_tag(&mut self, text: &mut Text, scope: &mut Scope) {
        if let Some((name, ty)) = self.pieces.tags.get(self.rng.below(self.pieces.tags.len())) {
            let value = self.expr(scope, *ty);
            text.line(&format!("{name} = {value};"));
        }
    }

    fn let_and_use(&mut self, text: &mut Text, scope: &mut Scope) {
        let fields: Vec<_> = writable(&scope.headers).collect();
        let Some(field) = fields.get(self.rng.below(fields.len())).copied() else { return };
        let ty = of_field(field);
        let depth = self.rng.below(3);
        let value = Exprs { rng: self.rng, pieces: self.pieces, scope }.typed(ty, depth);
        let Some(value) = value.filter(|_| ty != BOOL) else { return };
        if !scope.muts.is_empty() && self.rng.one_in(2) {
            self.change(text, scope);
            return;
        }
        let name = self.name();
        if self.rng.one_in(3) {
            text.line(&format!("let mut {name} = {value};"));
            scope.muts.push((name.clone(), ty));
        } else {
            text.line(&format!("let {name} = {value};"));
        }
        text.line(&format!("{} = {name};", field.info().name));
        scope.lets.push((name, ty));
    }

    /// Assigns a local that was declared with `let mut`.
    fn change(&mut self, text: &mut Text, scope: &Scope) {
        let (name, ty) = self.rng.pick(&scope.muts).clone();
        let value = self.expr(scope, ty);
        let op = if ty.kind == Kind::Uint { *self.rng.pick(&["=", "+=", "^="]) } else { "=" };
        text.line(&format!("{name} {op} {value};"));
    }

    /// A name that is new in the function.
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    fn branch(&mut self, text: &mut Text, scope: &mut Scope) {
        let condition = Exprs { rng: self.rng, pieces: self.pieces, scope }.condition();
        let (mut yes, mut no) = (scope.clone(), scope.clone());
        (yes.depth, no.depth) = (scope.depth + 1, scope.depth + 1);
        text.line(&format!("if {condition} {{"));
        let ends = self.rng.one_in(4);
        if ends {
            self.body(text, &mut yes);
            text.line("}");
            return;
        }
        self.statement(text, &mut yes);
        text.line("}");
        if self.rng.one_in(2) {
            text.line("else {");
            self.statement(text, &mut no);
            text.line("}");
        }
        scope.headers.retain(|header| yes.headers.contains(header) && no.headers.contains(header));
        scope.exists.retain(|state| yes.exists.contains(state) && no.exists.contains(state));
        scope.assigned.extend(yes.assigned.iter().chain(&no.assigned));
    }

    /// Writes a mirror, or a statement that sends a new packet.
    fn emission(&mut self, text: &mut Text, scope: &mut Scope) {
        let port = self.pieces.ports.get(self.rng.below(self.pieces.ports.len()));
        match (self.rng.below(5), port) {
            (0, Some(port)) => text.line(&format!("mirror {port};")),
            (1, _) if self.rng.one_in(2) => {
                self.both_sides = true;
                text.line("mirror back;");
            }
            (2, _) if scope.has(&[Header::Ip4]) => {
                self.both_sides = true;
                let (kind, length) = (self.rng.pick(&[3, 11, 12]), self.rng.below(200));
                let source = self.expr(scope, IP4);
                text.line(&format!(
                    "send icmp {{ ip.src = {source}; icmp.type = {kind}; payload = quote({length}); }}"
                ));
            }
            (3, _) if scope.has(&[Header::Ip4, Header::Tcp]) => {
                self.both_sides = true;
                text.line("send tcp { tcp.flags = 0x14; tcp.seq = tcp.ack; tcp.ack = tcp.seq; }");
            }
            (4, _) if scope.has(&[Header::Eth]) && self.rng.one_in(3) => {
                self.both_sides = true;
                text.line("send arp { arp.op = 2; arp.spa = 10.0.0.1; }");
            }
            (_, _) if scope.has(&[Header::Ip6]) => {
                self.both_sides = true;
                let shape = *self.rng.pick(&[
                    "send icmp6 { icmp6.type = 1; payload = quote(100); }",
                    "send tcp6 { tcp.flags = 4; tcp.seq = 7; }",
                    "send udp6 { udp.dport = 53; payload = same; }",
                ]);
                text.line(shape);
            }
            (_, _) if scope.has(&[Header::Ip4, Header::Udp]) => {
                self.both_sides = true;
                let value = self.expr(scope, super::types::PORT);
                text.line(&format!("send udp {{ udp.sport = {value}; payload = same; }}"));
            }
            _ => {}
        }
    }

    /// Adds or removes a TCP option.
    fn option(&mut self, text: &mut Text, scope: &mut Scope) {
        use Header::{TcpMss, TcpSackOk, TcpTs, TcpWscale};
        let all = [TcpMss, TcpWscale, TcpSackOk, TcpTs];
        let there: Vec<Header> = all.into_iter().filter(|option| scope.has(&[*option])).collect();
        if !there.is_empty() && self.rng.one_in(2) {
            let option = *self.rng.pick(&there);
            text.line(&format!("pop {};", option.name()));
            scope.headers.retain(|header| *header != option);
            return;
        }
        let option = *self.rng.pick(&all);
        let name = option.name();
        let values: Vec<String> = options::values(option)
            .iter()
            .map(|bytes| self.expr(scope, Ty::uint(u16::try_from(8 * bytes).unwrap_or(8))))
            .collect();
        let values =
            if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
        text.line(&format!("push {name}{values} else drop \"no room\";"));
        match self.rng.one_in(4) {
            true => text.line(&format!("if has {name} {{ pop {name}; }}")),
            false => scope.headers.push(option),
        }
    }

    fn vlan(&mut self, text: &mut Text, scope: &mut Scope) {
        if self.rng.one_in(4) {
            return self.tunnel(text, scope);
        }
        if scope.has(&[Header::Vlan]) && self.rng.one_in(2) {
            text.line("pop vlan;");
            scope.headers.retain(|header| !matches!(header, Header::Vlan | Header::Vlan2));
        } else if scope.has(&[Header::Eth]) && scope.depth < 2 {
            let id = self.expr(scope, Ty::uint(12));
            text.line(&format!("push vlan({id});"));
        }
    }

    /// Adds or removes outer headers. The packet's headers must be tested again.
    fn tunnel(&mut self, text: &mut Text, scope: &mut Scope) {
        let id = self.expr(scope, Ty::uint(16));
        let ip = "ip { src: 192.0.2.1, dst: 192.0.2.2 }";
        let eth = "eth { src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02 }";
        let keys = self.pieces.params.iter().find(|param| param.kind == ParamKind::Keys);
        let number = self.rng.range(1, 3);
        let mut own = Rng::new(self.rng.clone().bits() ^ 0x6168);
        let (authenticates, other) = (own.one_in(2), own.range(2, 5));
        let high = *own.pick(&["", "", ", high: 0", ", high: 7"]);
        let (udp, in_udp) = match own.one_in(2) {
            true => (", udp { sport: 4500, dport: 4500 }", ", udp"),
            false => ("", ""),
        };
        let change = match (self.rng.below(11), keys) {
            (7, Some(keys)) if authenticates => {
                format!("push {ip}, ah {{ spi: {other}, seq: 9, keys: {} }}", keys.name)
            }
            (8, Some(keys)) if authenticates => format!("pop ip, ah {{ keys: {} }}", keys.name),
            (7, Some(keys)) => format!(
                "push {ip}{udp}, esp {{ spi: {number}, seq: 9, keys: {}, iv: u64({id}){high} }}",
                keys.name
            ),
            (8, Some(keys)) => format!("pop ip{in_udp}, esp {{ keys: {}{high} }}", keys.name),
            (other, _) => self.plain_tunnel(other, (ip, eth, &id)),
        };
        text.line(&format!("{change} else drop \"no tunnel\";"));
        scope.headers.clear();
    }

    /// Adds, removes or translates outer headers without encryption.
    fn plain_tunnel(&mut self, kind: usize, (ip, eth, id): (&str, &str, &str)) -> String {
        let low = |number: u8| format!("ip4(u32({id}) + {number})");
        let high = |number: u8| format!("ip6(u128({id}) + {number})");
        match kind {
            0 => format!("push {ip}"),
            1 => format!("push {ip}, gre {{ key: u32({id}) }}"),
            2 => format!("push {eth}, {ip}, udp {{ sport: 9 }}, vxlan {{ vni: u24({id}) }}"),
            3 => "push mpls { label: 7 }".to_owned(),
            4 => "pop ip, gre".to_owned(),
            5 => "pop eth, ip, udp, vxlan".to_owned(),
            7 => format!("to_ip4({}, {}, {}, {})", low(1), low(2), low(3), low(4)),
            8 => format!("to_ip6({}, {}, {}, {})", high(1), high(2), high(3), high(4)),
            9 => format!("to_ip4({}, 192.0.2.2)", low(0)),
            10 => format!("to_ip6({}, 2001:db8::2)", high(0)),
            _ => "pop ip".to_owned(),
        }
    }

    /// Publishes an event.
    pub(super) fn emit(&mut self, text: &mut Text, scope: &Scope) {
        let pieces = self.pieces;
        let Some(event) = pieces.events.get(self.rng.below(pieces.events.len())) else { return };
        let named = pieces.params.iter().find(|param| param.kind == ParamKind::Text);
        let fields: Vec<_> = event
            .fields
            .iter()
            .map(|(name, ty)| match (ty, named) {
                (Some(ty), _) => format!("{name}: {}", self.expr(scope, *ty)),
                (None, Some(param)) => format!("{name}: {}", param.name),
                (None, None) => format!("{name}: \"said\""),
            })
            .collect();
        text.line(&format!("emit {} {{ {} }};", event.name, fields.join(", ")));
    }

    fn rounds(&mut self, text: &mut Text, scope: &mut Scope) {
        let bytes: Vec<_> =
            writable(&scope.headers).filter(|field| of_field(*field) == Ty::uint(8)).collect();
        let Some(field) = bytes.get(self.rng.below(bytes.len())) else { return };
        let name = field.info().name;
        let rounds = 1 + self.rng.below(4);
        text.line(&format!("for i in 0..{rounds} {{"));
        text.line(&format!("{name} -= i;"));
        text.line("}");
    }

    fn delete(&mut self, text: &mut Text, scope: &mut Scope) {
        let number = self.rng.below(self.pieces.states.len());
        let Some(state) = self.pieces.states.get(number) else { return };
        if matches!(state.per, Per::Global | Per::Types(_)) || !scope.has(&state.per.needs()) {
            return;
        }
        text.line(&format!("delete {};", state.name));
        scope.exists.clear();
    }

    /// Writes statements for a timer or an expiry, where there is no packet.
    pub(super) fn without_packet(&mut self, text: &mut Text) {
        let globals: Vec<_> = self
            .pieces
            .states
            .iter()
            .filter(|state| state.per == Per::Global && state.scalar() == Some(U32))
            .collect();
        if let Some(state) = globals.get(self.rng.below(globals.len())) {
            let name = &state.name;
            let step = literal(self.rng, Ty::uint(8));
            let line = match self.rng.below(3) {
                0 => format!("{name} = {name} / 2;"),
                1 => format!("{name} = min({name} + {step}, 1000);"),
                _ => format!("if {name} > 3 {{ {name} -= 1; }}"),
            };
            text.line(&line);
        }
    }
}
