//! Prints lines, blocks and groups as text of bounded width.

use super::space::{self, Separator};
use super::text::{WIDTH, part};
use super::tree::{Block, Group, Item, Lead, Line, Node, Tree, comment_text, is_forced};
use crate::lexer::Comment;
use crate::parse::Source;

/// Indentation of blocks and items.
const INDENT: usize = 2;
/// Indentation of a continued line. It is larger than that of a block, so that the two look
/// different.
const CONTINUED: usize = 4;
/// A list of at least this many short items is filled, several items per line.
const FILL_ITEMS: usize = 6;
/// The greatest width of a short item.
const FILL_WIDTH: usize = 24;

pub(super) struct Printer<'s> {
    text: &'s str,
    source: &'s Source,
    out: String,
    /// Characters on the current line.
    col: usize,
    /// The previous piece on this line: nothing, a token, or a comment.
    last: Last,
}

#[derive(Clone, Copy)]
enum Last {
    Nothing,
    Tok(usize),
    Note,
}

impl<'s> Printer<'s> {
    pub(super) fn new(text: &'s str, source: &'s Source) -> Self {
        Self { text, source, out: String::new(), col: 0, last: Last::Nothing }
    }

    pub(super) fn finish(mut self) -> String {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    pub(super) fn file(&mut self, tree: &Tree) {
        self.lines(&tree.lines, 0, true);
        self.leads(&tree.end, 0, tree.lines.is_empty());
    }

    fn newline(&mut self, indent: usize) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.col = indent;
        self.last = Last::Nothing;
    }

    fn blank(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.col += text.chars().count();
    }

    fn token_text(&self, at: usize) -> &'s str {
        self.source.tokens.get(at).map_or("", |token| part(self.text, token.start, token.end))
    }

    fn gap(&self, last: Last, at: usize) -> bool {
        match last {
            Last::Nothing => false,
            Last::Tok(before) => space::between(self.source, before, at),
            Last::Note => true,
        }
    }

    fn token(&mut self, at: usize) {
        if self.gap(self.last, at) {
            self.push(" ");
        }
        self.push(self.token_text(at));
        self.last = Last::Tok(at);
    }

    fn note(&mut self, comment: Comment) {
        if !matches!(self.last, Last::Nothing) {
            self.push(" ");
        }
        let text = comment_text(self.text, comment);
        self.push(&text);
        self.last = Last::Note;
    }

    fn trail(&mut self, comments: &[Comment]) {
        for comment in comments {
            self.note(*comment);
        }
    }

    /// Prints comments on lines of their own.
    fn leads(&mut self, leads: &[Lead], indent: usize, first: bool) {
        for (number, lead) in leads.iter().enumerate() {
            if lead.blank && !(first && number == 0) {
                self.blank();
            }
            self.newline(indent);
            self.note(lead.comment);
        }
    }

    fn lines(&mut self, lines: &[Line], indent: usize, may_join: bool) {
        for (number, line) in lines.iter().enumerate() {
            let before = number.checked_sub(1).and_then(|at| lines.get(at));
            if may_join && before.is_some_and(|before| self.joins(before, line)) {
                self.flat(&line.nodes);
            } else {
                self.leads(&line.lead, indent, number == 0);
                if line.blank && (number > 0 || !line.lead.is_empty()) {
                    self.blank();
                }
                self.newline(indent);
                self.line(&line.nodes, indent);
            }
            self.trail(&line.trail);
        }
    }

    /// Whether a statement stays on the line of the statement before.
    fn joins(&self, before: &Line, line: &Line) -> bool {
        let plain =
            |line: &Line| line.stmt && !line.nodes.iter().any(|n| matches!(n, Node::Block(_)));
        let alone = before.trail.is_empty() && line.lead.is_empty();
        let one_line = self.width(&before.nodes, Last::Nothing, WIDTH).is_some();
        plain(before)
            && plain(line)
            && alone
            && line.joined
            && one_line
            && self.fits(&line.nodes, 0)
    }

    fn line(&mut self, nodes: &[Node], indent: usize) {
        if self.fits(nodes, 0) {
            return self.flat(nodes);
        }
        let mut rest = nodes;
        let breaks = |node: &Node| match node {
            Node::Block(_) => true,
            Node::Group(group) => group.fields,
            Node::Tok(_) | Node::Note(_) => false,
        };
        while let Some(at) = rest.iter().position(breaks) {
            let reserve = 2;
            self.part(&rest[..at], indent, reserve);
            match &rest[at] {
                Node::Block(block) => self.block(block, indent),
                Node::Group(group) => self.group(group, indent),
                Node::Tok(_) | Node::Note(_) => {}
            }
            rest = &rest[at + 1..];
        }
        self.part(rest, indent, 0);
    }

    /// Prints a block on several lines.
    fn block(&mut self, block: &Block, indent: usize) {
        self.token(block.open);
        self.trail(&block.open_trail);
        if !(block.lines.is_empty() && block.end.is_empty() && block.open_trail.is_empty()) {
            self.lines(&block.lines, indent + INDENT, !block.inline);
            self.leads(&block.end, indent + INDENT, block.lines.is_empty());
            self.newline(indent);
        }
        self.token(block.close);
    }

    /// Prints a line without blocks, or the part of a line before a block. Leaves room for
    /// `reserve` characters.
    fn part(&mut self, nodes: &[Node], indent: usize, reserve: usize) {
        if self.fits(nodes, reserve) {
            return self.flat(nodes);
        }
        let ranks = nodes.iter().skip(1).filter_map(|node| self.separator(node));
        match ranks.map(|separator| separator.rank).min() {
            Some(rank) => self.pieces(nodes, rank, indent, reserve),
            None => self.groups(nodes, indent, reserve),
        }
    }

    fn separator(&self, node: &Node) -> Option<Separator> {
        match node {
            Node::Tok(at) => space::separator(self.source, self.text, *at),
            _ => None,
        }
    }

    /// Breaks at separators of one rank, as few as possible.
    fn pieces(&mut self, nodes: &[Node], rank: u8, indent: usize, reserve: usize) {
        let mut rest = nodes;
        let mut first = true;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.piece_len(rest, rank));
            let reserve = if after.is_empty() { reserve } else { 0 };
            if !first && !self.fits(piece, reserve) {
                self.newline(indent + CONTINUED);
            }
            if first && after.is_empty() {
                // No piece was split off, because the separator ends the part.
                return self.groups(nodes, indent, reserve);
            }
            let indent = if first { indent } else { indent + CONTINUED };
            self.part(piece, indent, reserve);
            rest = after;
            first = false;
        }
    }

    /// Number of nodes in the first piece.
    fn piece_len(&self, nodes: &[Node], rank: u8) -> usize {
        let found = nodes.iter().enumerate().skip(1).find_map(|(at, node)| {
            let separator = self.separator(node).filter(|separator| separator.rank == rank)?;
            Some(if separator.ends_line { at + 1 } else { at })
        });
        let len = found.unwrap_or(nodes.len());
        len + leading_notes(&nodes[len..])
    }

    /// Breaks bracketed groups, as few as possible.
    fn groups(&mut self, nodes: &[Node], indent: usize, reserve: usize) {
        for (at, node) in nodes.iter().enumerate() {
            let Node::Group(group) = node else {
                self.flat(std::slice::from_ref(node));
                continue;
            };
            let rest = &nodes[at..];
            let next = rest.iter().skip(1).position(|node| matches!(node, Node::Group(_)));
            let (run, reserve) = match next {
                // One more character for the next group's bracket.
                Some(len) => (&rest[..=len], 2),
                None => (rest, reserve),
            };
            if self.fits(run, reserve) || (group.items.is_empty() && !is_forced(group)) {
                self.flat(std::slice::from_ref(node));
            } else if self.is_parenthesis(group) {
                let after = self.width(&run[1..], Last::Note, WIDTH).unwrap_or(0);
                self.parenthesis(group, indent, after + reserve);
            } else {
                self.group(group, indent);
            }
        }
    }

    /// Whether a group is an expression in parentheses, without comments of its own.
    fn is_parenthesis(&self, group: &Group) -> bool {
        let bare = |item: &Item| item.lead.is_empty() && item.trail.is_empty();
        let ends = group.open_trail.is_empty() && group.end.is_empty();
        let round = self.token_text(group.open) == "(";
        round && !group.list && ends && group.items.len() == 1 && group.items.iter().all(bare)
    }

    /// Prints an expression in parentheses on several lines, with the continuation inside the
    /// brackets.
    fn parenthesis(&mut self, group: &Group, indent: usize, reserve: usize) {
        self.token(group.open);
        for item in &group.items {
            self.part(&item.nodes, indent, reserve + 1);
        }
        self.token(group.close);
    }

    /// Prints a group on several lines.
    fn group(&mut self, group: &Group, indent: usize) {
        self.token(group.open);
        self.trail(&group.open_trail);
        let inner = indent + INDENT;
        let fill = self.is_filled(group);
        for (number, item) in group.items.iter().enumerate() {
            let last = number + 1 == group.items.len();
            // One character for the comma.
            if number == 0 || !fill || !self.fits(&item.nodes, 1) {
                self.leads(&item.lead, inner, number == 0);
                self.newline(inner);
            }
            let notes = leading_notes(&item.nodes);
            for note in &item.nodes[..notes] {
                self.flat(std::slice::from_ref(note));
                if notes < item.nodes.len() {
                    self.newline(inner);
                }
            }
            self.part(&item.nodes[notes..], inner, 1);
            let empty = item.nodes.iter().all(|node| matches!(node, Node::Note(_)));
            if (!last || group.list) && !empty {
                self.push(",");
                // A space follows in a filled list.
                self.last = Last::Note;
            }
            self.trail(&item.trail);
        }
        self.leads(&group.end, inner, group.items.is_empty());
        self.newline(indent);
        self.token(group.close);
    }

    fn is_filled(&self, group: &Group) -> bool {
        let plain = |item: &Item| item.nodes.iter().all(|node| matches!(node, Node::Tok(_)));
        let short = |item: &Item| self.width(&item.nodes, Last::Nothing, FILL_WIDTH).is_some();
        let many = group.items.len() >= FILL_ITEMS && !is_forced(group);
        many && group.items.iter().all(|item| plain(item) && short(item))
    }

    /// Whether nodes fit on the rest of the line with room for `reserve` characters.
    fn fits(&self, nodes: &[Node], reserve: usize) -> bool {
        let room = WIDTH.saturating_sub(self.col + reserve);
        self.width(nodes, self.last, room).is_some()
    }

    fn flat(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Tok(at) => self.token(*at),
                Node::Note(comment) => self.note(*comment),
                Node::Group(group) => self.flat_group(group),
                Node::Block(block) => self.flat_block(block),
            }
        }
    }

    fn flat_group(&mut self, group: &Group) {
        self.token(group.open);
        for (number, item) in group.items.iter().enumerate() {
            if number > 0 {
                self.push(",");
                self.last = Last::Note;
            }
            self.flat(&item.nodes);
        }
        // The space between the last item and the bracket depends on both.
        self.token(group.close);
    }

    fn flat_block(&mut self, block: &Block) {
        self.token(block.open);
        for line in &block.lines {
            self.flat(&line.nodes);
        }
        self.token(block.close);
    }

    /// The width of nodes on one line, including the space before. `None` if they need several
    /// lines or more than `room`.
    fn width(&self, nodes: &[Node], last: Last, room: usize) -> Option<usize> {
        let mut measure = Measure { printer: self, last, width: 0, room };
        measure.nodes(nodes)?;
        Some(measure.width)
    }
}

/// Number of comments at the start. A comment never starts a line here, because the next run would
/// take it for a comment on a line of its own.
fn leading_notes(nodes: &[Node]) -> usize {
    nodes.iter().take_while(|node| matches!(node, Node::Note(_))).count()
}

/// Measures what `flat` would print.
struct Measure<'p, 's> {
    printer: &'p Printer<'s>,
    last: Last,
    width: usize,
    room: usize,
}

impl Measure<'_, '_> {
    fn add(&mut self, width: usize) -> Option<()> {
        self.width += width;
        (self.width <= self.room).then_some(())
    }

    fn token(&mut self, at: usize) -> Option<()> {
        let gap = usize::from(self.printer.gap(self.last, at));
        self.last = Last::Tok(at);
        self.add(gap + self.printer.token_text(at).chars().count())
    }

    fn nodes(&mut self, nodes: &[Node]) -> Option<()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Tok(at) => self.token(*at),
            Node::Note(comment) => {
                let gap = usize::from(!matches!(self.last, Last::Nothing));
                self.last = Last::Note;
                self.add(gap + comment_text(self.printer.text, *comment).chars().count())
            }
            Node::Group(group) => self.group(group),
            Node::Block(block) => self.block(block),
        }
    }

    fn group(&mut self, group: &Group) -> Option<()> {
        if !group.open_trail.is_empty() || !group.end.is_empty() {
            return None;
        }
        self.token(group.open)?;
        for (number, item) in group.items.iter().enumerate() {
            if !item.lead.is_empty() || !item.trail.is_empty() {
                return None;
            }
            if number > 0 {
                self.add(1)?;
                self.last = Last::Note;
            }
            self.nodes(&item.nodes)?;
        }
        self.token(group.close)
    }

    fn block(&mut self, block: &Block) -> Option<()> {
        if !block.inline {
            return None;
        }
        self.token(block.open)?;
        block.lines.iter().try_for_each(|line| self.nodes(&line.nodes))?;
        self.token(block.close)
    }
}
