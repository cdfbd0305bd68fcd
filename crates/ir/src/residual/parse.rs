//! Parses the text form of residual programs: the inverse of [`super::text::print`].

use super::program::{
    Block, Counter, CounterList, CounterListId, End, Exit, Fate, HeaderMask, ListedCounter, Point,
    Residual, RuleFields, Site, Step, What,
};
use crate::chain::Chain;
use crate::engine::Fault;
use crate::model::{Model, RowId, Ty, ValueId};
use crate::text::TextError;
use crate::text::words::{Parser, Result, Scan, field, parse_typed, resolve};
use braid_packet::Header;
use std::collections::HashMap;
use std::sync::Arc;

/// Parses a residual program of a chain. The result may not pass [`super::check()`].
///
/// # Errors
/// The first place where the text is not a residual program of this chain.
pub fn parse(text: &str, chain: &Chain) -> std::result::Result<Residual, TextError> {
    let mut reader = Reader {
        scan: Scan::new(text),
        chain,
        types: Vec::new(),
        counter_lists: Vec::new(),
        numbers: HashMap::new(),
    };
    reader.program()
}

struct Reader<'a> {
    scan: Scan<'a>,
    chain: &'a Chain,
    /// The type of each value that is defined so far.
    types: Vec<Option<Ty>>,
    counter_lists: Vec<CounterList>,
    numbers: HashMap<CounterList, CounterListId>,
}

impl Reader<'_> {
    fn program(&mut self) -> Result<Residual> {
        self.scan.expect_word("at")?;
        let point = self.point()?;
        self.scan.expect_word("for")?;
        let shape = self.shape()?;
        let visits = self.scan.number()?;
        self.scan.expect_word("functions")?;
        let mut blocks = Vec::new();
        while !self.scan.at_end() {
            let block = self.block(blocks.len())?;
            blocks.push(block);
        }
        self.all_defined(&blocks)?;
        // A number without a definition has any type.
        let values = self.types.iter().map(|ty| ty.unwrap_or(Ty::uint(1))).collect();
        let counter_lists = std::mem::take(&mut self.counter_lists);
        Ok(Residual { point, shape, visits, values, blocks, counter_lists })
    }

    /// Refuses uses of values that no block defines.
    fn all_defined(&self, blocks: &[Block]) -> Result<()> {
        let mut missing = None;
        let mut check = |value: &ValueId| {
            if self.types.get(value.index()).copied().flatten().is_none() {
                missing.get_or_insert(*value);
            }
        };
        for block in blocks {
            for step in &block.steps {
                step.what.visit_uses(&mut check);
            }
            block.end.visit_uses(&mut check);
            block.end.visit_targets(&mut |target| target.args.iter().for_each(&mut check));
        }
        match missing {
            Some(value) => self.scan.error(format!("{value} is used and defined nowhere")),
            None => Ok(()),
        }
    }

    fn point(&mut self) -> Result<Point> {
        let node = self.node()?;
        let backward = match self.scan.word()? {
            "forward" => false,
            "backward" => true,
            _ => return self.scan.wrong("expected `forward` or `backward`"),
        };
        Ok(Point { node, backward, held: self.scan.eat_word("held") })
    }

    /// Headers, up to and including the comma.
    fn shape(&mut self) -> Result<HeaderMask> {
        let mut shape = HeaderMask { care: 0, present: 0 };
        if self.scan.eat_word("any") {
            self.scan.expect(",")?;
            return Ok(shape);
        }
        while !self.scan.eat(",") {
            let absent = self.scan.eat_word("not");
            let name = self.scan.dotted()?;
            let Some(header) = Header::by_name(name) else {
                return self.scan.wrong(format!("no header `{name}`"));
            };
            let bit = header.bit();
            if shape.care & bit != 0 {
                return self.scan.wrong(format!("`{name}` stands twice in the shape"));
            }
            shape.care |= bit;
            shape.present |= if absent { 0 } else { bit };
        }
        Ok(shape)
    }

    /// The number of a function.
    fn node(&mut self) -> Result<u16> {
        let names = self.chain.nodes.iter().map(|node| &*node.name);
        let word = self.scan.name()?;
        let found = resolve("node", names, &word).and_then(|node| u16::try_from(node).ok());
        found.map_or_else(|| self.scan.wrong(format!("no function `{word}`")), Ok)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "`node` gives only numbers of functions of the chain"
    )]
    fn model(&self, node: u16) -> Arc<Model> {
        self.chain.nodes[usize::from(node)].model.clone()
    }

    /// A parser of the operations of one function.
    fn with<T>(
        &mut self,
        node: u16,
        parse: impl FnOnce(&mut Parser<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let model = self.model(node);
        parse(&mut Parser { scan: &mut self.scan, model: &model, types: &mut self.types })
    }

    fn block(&mut self, number: usize) -> Result<Block> {
        self.scan.expect_word(&format!("b{number}"))?;
        let mut params = Vec::new();
        if self.scan.eat("(") {
            let types = &mut self.types;
            params = self.scan.items(")", |scan| parse_typed(scan, types))?;
        }
        self.scan.expect(":")?;
        let mut steps = Vec::new();
        loop {
            if let Some(end) = self.plain_end()? {
                return Ok(Block { params, steps, end });
            }
            let site = self.site()?;
            if let Some(end) = self.end_of(site.node)? {
                return Ok(Block { params, steps, end });
            }
            let step = self.step(site)?;
            steps.push(step);
        }
    }

    /// `name:`, or `name@2.3:` with the place in the function's program.
    fn site(&mut self) -> Result<Site> {
        let node = self.node()?;
        let (mut block, mut op) = (0, 0);
        if self.scan.eat("@") {
            block = self.scan.decimal()?;
            self.scan.expect(".")?;
            op = self.scan.decimal()?;
        }
        self.scan.expect(":")?;
        Ok(Site { node, block, op })
    }

    /// An end that belongs to no function, if one comes next.
    fn plain_end(&mut self) -> Result<Option<End>> {
        let word = self.scan.peek_word();
        if !["jump", "branch", "leave", "go", "hold"].contains(&word) || self.scan.names_step() {
            return Ok(None);
        }
        self.scan.expect_word(word)?;
        Ok(Some(match word {
            "jump" => End::Jump(self.target()?),
            "branch" => {
                let cond = self.value()?;
                self.scan.expect(",")?;
                let yes = self.target()?;
                self.scan.expect(",")?;
                End::Branch { cond, yes, no: self.target()? }
            }
            "leave" => {
                let names = self.chain.interfaces.iter().map(|interface| &*interface.name);
                let name = self.scan.name()?;
                let found = resolve("interface", names, &name);
                let Some(interface) = found.and_then(|number| u16::try_from(number).ok()) else {
                    return self.scan.wrong(format!("no interface `{name}`"));
                };
                self.exit(Fate::Leave { interface })?
            }
            "go" => {
                let point = self.point()?;
                self.exit(Fate::Go(point))?
            }
            _ => self.hold()?,
        }))
    }

    fn hold(&mut self) -> Result<End> {
        let node = self.node()?;
        self.scan.expect(".")?;
        let queue = self.with(node, |parser| parser.queue())?;
        self.scan.expect_word("for")?;
        let delay = self.value()?;
        let counters = self.counters()?;
        self.scan.expect_word("else")?;
        Ok(End::Hold { node, queue, delay, counters, full: self.target()? })
    }

    /// An end of a function, if one comes next.
    fn end_of(&mut self, node: u16) -> Result<Option<End>> {
        let word = self.scan.peek_word();
        if !["output", "drop", "fault", "consume", "resubmit"].contains(&word) {
            return Ok(None);
        }
        self.scan.expect_word(word)?;
        let fate = match word {
            "output" => {
                let ports = self.with(node, |parser| {
                    let mut ports = vec![parser.dest()?];
                    while parser.scan.eat(",") {
                        ports.push(parser.dest()?);
                    }
                    Ok(ports)
                })?;
                Fate::Output { node, ports }
            }
            "drop" => {
                let (reason, row) =
                    self.with(node, |parser| Ok((parser.reason()?, parser.row()?)))?;
                Fate::Drop { node, row, reason }
            }
            "fault" => {
                let name = self.scan.word()?;
                let Some(fault) = FAULTS.into_iter().find(|fault| fault.reason() == name) else {
                    return self.scan.wrong(format!("no fault `{name}`"));
                };
                Fate::Fault { node, fault }
            }
            "consume" => Fate::Consume { node },
            _ => Fate::Resubmit { node },
        };
        self.exit(fate).map(Some)
    }

    fn exit(&mut self, fate: Fate) -> Result<End> {
        Ok(End::Exit(Exit { counters: self.counters()?, fate }))
    }

    fn step(&mut self, site: Site) -> Result<Step> {
        let what = match self.own(site.node)? {
            Some(what) => what,
            None => {
                let outs = self.with(site.node, |parser| parser.outs())?;
                self.result(site.node, &outs)?
            }
        };
        let fault = if self.scan.eat_word("else") { Some(self.counters()?) } else { None };
        Ok(Step { site, what, fault })
    }

    /// A step that only residual programs have and that defines no values, if one comes next.
    fn own(&mut self, node: u16) -> Result<Option<What>> {
        let word = self.scan.peek_word();
        if !["enter", "count_rule", "write", "parse", "count"].contains(&word) {
            return Ok(None);
        }
        self.scan.expect_word(word)?;
        Ok(Some(match word {
            "enter" => What::Enter,
            "count_rule" => {
                let param = self.with(node, |parser| parser.param())?;
                self.scan.expect(",")?;
                What::CountRule { param, rule: self.value()? }
            }
            "write" => {
                let mut fields = vec![self.assignment()?];
                while self.scan.eat(",") {
                    fields.push(self.assignment()?);
                }
                What::Write(fields)
            }
            "parse" => What::Parse,
            _ => What::Count(self.counters()?),
        }))
    }

    fn assignment(&mut self) -> Result<(braid_packet::Field, ValueId)> {
        let field = field(&mut self.scan)?;
        self.scan.expect("=")?;
        Ok((field, self.value()?))
    }

    /// The right side of a step that defines these values.
    fn result(&mut self, node: u16, outs: &[ValueId]) -> Result<What> {
        let word = self.scan.peek_word();
        if !["classify", "find", "read"].contains(&word) {
            return self.with(node, |parser| parser.op(outs.to_vec())).map(What::Op);
        }
        self.scan.expect_word(word)?;
        match (word, outs) {
            ("classify", [pass, rule]) => {
                let param = self.with(node, |parser| parser.param())?;
                let packet = self.rule_fields()?.map(Box::new);
                Ok(What::Classify { pass: *pass, rule: *rule, param, packet })
            }
            ("find", [found, entry]) => {
                let state = self.with(node, |parser| parser.state())?;
                self.scan.expect("[")?;
                let key = self.values("]")?;
                Ok(What::Find { found: *found, entry: *entry, state, key })
            }
            ("read", _) => {
                let state = self.with(node, |parser| parser.state())?;
                self.scan.expect(",")?;
                Ok(What::Read { outs: outs.to_vec(), state, entry: self.value()? })
            }
            _ => self.scan.wrong(format!("`{word}` has two results")),
        }
    }

    /// `ip4(source, destination, protocol) ports(…) icmp(…) flags(…)`, or nothing.
    fn rule_fields(&mut self) -> Result<Option<RuleFields>> {
        let version = match self.scan.peek_word() {
            "ip4" => 4,
            "ip6" => 6,
            _ => return Ok(None),
        };
        self.scan.word()?;
        self.scan.expect("(")?;
        let [src, dst, proto] = self.exactly()?;
        let (mut ports, mut icmp, mut tcp_flags) = (None, None, None);
        loop {
            if self.scan.eat_word("ports") {
                self.scan.expect("(")?;
                let [a, b] = self.exactly()?;
                ports = Some((a, b));
            } else if self.scan.eat_word("icmp") {
                self.scan.expect("(")?;
                let [a, b] = self.exactly()?;
                icmp = Some((a, b));
            } else if self.scan.eat_word("flags") {
                self.scan.expect("(")?;
                let [flags] = self.exactly()?;
                tcp_flags = Some(flags);
            } else {
                return Ok(Some(RuleFields { version, src, dst, proto, ports, tcp_flags, icmp }));
            }
        }
    }

    /// A fixed number of values, up to and including a closing parenthesis.
    fn exactly<const N: usize>(&mut self) -> Result<[ValueId; N]> {
        let values = self.values(")")?;
        match <[ValueId; N]>::try_from(values) {
            Ok(values) => Ok(values),
            Err(values) => self.scan.error(format!("expected {N} values, found {}", values.len())),
        }
    }

    fn value(&mut self) -> Result<ValueId> {
        self.scan.id("v").map(ValueId)
    }

    fn values(&mut self, close: &str) -> Result<Vec<ValueId>> {
        self.scan.items(close, |scan| scan.id("v").map(ValueId))
    }

    fn target(&mut self) -> Result<crate::model::Target> {
        let block = self.scan.id("b").map(crate::model::BlockId)?;
        let args = if self.scan.eat("(") { self.values(")")? } else { Vec::new() };
        Ok(crate::model::Target { block, args })
    }

    /// `[a:forward b:row1-4]`
    fn counters(&mut self) -> Result<CounterListId> {
        self.scan.expect("[")?;
        let mut counters = CounterList::new();
        while !self.scan.eat("]") {
            let node = self.node()?;
            self.scan.expect(":")?;
            let counter = match self.scan.peek_word() {
                "forward" => Counter::Forward,
                "backward" => Counter::Backward,
                "background" => Counter::Background,
                _ => Counter::Row(RowId(self.scan.id("row")?)),
            };
            if !matches!(counter, Counter::Row(_)) {
                self.scan.word()?;
            }
            let length = if self.scan.eat("+") {
                self.scan.number::<i32>()?
            } else if self.scan.eat("-") {
                -self.scan.number::<i32>()?
            } else {
                0
            };
            counters.push(ListedCounter { node, counter, length });
        }
        if let Some(found) = self.numbers.get(&counters) {
            return Ok(*found);
        }
        let id = CounterListId(u32::try_from(self.counter_lists.len()).unwrap_or(u32::MAX));
        self.counter_lists.push(counters.clone());
        self.numbers.insert(counters, id);
        Ok(id)
    }
}

/// All faults.
const FAULTS: [Fault; 6] = [
    Fault::Index,
    Fault::Division,
    Fault::NoEntry,
    Fault::Resubmit,
    Fault::Truncated,
    Fault::Native,
];
