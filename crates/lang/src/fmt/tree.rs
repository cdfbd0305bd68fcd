//! Builds lines, blocks and groups from tokens and comments.

use super::text::{newlines, part};
use crate::lexer::{Comment, Tok, Token};
use crate::parse::{BLOCK, FIELDS, GENERIC, LINE, LIST, STMT, Source};

/// A comment on a line of its own.
pub(super) struct Lead {
    pub comment: Comment,
    /// Whether a blank line precedes it.
    pub blank: bool,
}

/// A piece of a line. Numbers identify tokens.
pub(super) enum Node {
    Tok(usize),
    /// A `/* … */` within a line.
    Note(Comment),
    Group(Group),
    Block(Block),
}

/// Brackets with items between commas.
pub(super) struct Group {
    pub open: usize,
    pub close: usize,
    /// Whether a comma may follow the last item.
    pub list: bool,
    /// Whether it holds the fields of a header, so that a long line breaks there first.
    pub fields: bool,
    /// Comments right after the opening bracket.
    pub open_trail: Vec<Comment>,
    pub items: Vec<Item>,
    /// Comments before the closing bracket.
    pub end: Vec<Lead>,
}

/// An item of a group.
#[derive(Default)]
pub(super) struct Item {
    pub lead: Vec<Lead>,
    pub nodes: Vec<Node>,
    pub trail: Vec<Comment>,
}

impl Item {
    /// Adds a comment after the item. If a `//` comment already ends its line, the comment goes in
    /// front.
    fn add_trail(&mut self, comment: Comment) {
        if self.trail.last().is_some_and(|last| last.line) {
            self.lead.push(Lead { comment, blank: false });
        } else {
            self.trail.push(comment);
        }
    }
}

/// Braces with lines.
pub(super) struct Block {
    pub open: usize,
    pub close: usize,
    pub open_trail: Vec<Comment>,
    pub lines: Vec<Line>,
    pub end: Vec<Lead>,
    /// Whether the block is written on one line and may stay there.
    pub inline: bool,
}

/// A statement, row or declaration.
#[derive(Default)]
pub(super) struct Line {
    pub lead: Vec<Lead>,
    /// Whether a blank line precedes it.
    pub blank: bool,
    /// Whether it is a statement, which may share a line.
    pub stmt: bool,
    /// Whether it is written on the same line as the text before.
    pub joined: bool,
    pub nodes: Vec<Node>,
    pub trail: Vec<Comment>,
}

/// A whole file, with lines as in a block.
pub(super) struct Tree {
    pub lines: Vec<Line>,
    pub end: Vec<Lead>,
}

pub(super) fn build(text: &str, source: &Source) -> Tree {
    let mut builder = Builder { text, source, pos: 0, comment: 0 };
    let mut start = Vec::new();
    let (lines, end) = builder.lines(&mut start);
    Tree { lines, end }
}

struct Builder<'s> {
    text: &'s str,
    source: &'s Source,
    pos: usize,
    comment: usize,
}

/// Comments between two tokens: comments on the first token's line, and the others.
struct Between {
    same: Vec<Comment>,
    own: Vec<Lead>,
}

impl Builder<'_> {
    fn token(&self) -> Token {
        self.source.tokens[self.pos]
    }

    fn kind(&self) -> Tok {
        self.token().kind
    }

    fn has(&self, mark: u8) -> bool {
        self.source.marks.has(self.pos, mark)
    }

    /// The end of the last consumed token.
    fn last_end(&self) -> u32 {
        self.pos.checked_sub(1).map_or(0, |last| self.source.tokens[last].end)
    }

    /// Consumes the comments before the current token.
    fn between(&mut self) -> Between {
        let mut found = Between { same: Vec::new(), own: Vec::new() };
        let mut end = self.last_end();
        while let Some(&comment) = self.source.comments.get(self.comment) {
            if comment.start >= self.token().start {
                break;
            }
            self.comment += 1;
            let lines = newlines(self.text, end, comment.start);
            end = comment.end;
            if lines == 0 && found.own.is_empty() && self.pos > 0 {
                found.same.push(comment);
            } else {
                found.own.push(Lead { comment, blank: lines > 1 });
            }
        }
        found
    }

    /// Whether a comment may be inside a line.
    fn is_note(&self, comment: Comment) -> bool {
        !comment.line && newlines(self.text, comment.start, comment.end) == 0
    }

    /// Reads lines up to a `}` or the end, and the comments before it. `before` receives comments
    /// on the line of the opening brace.
    fn lines(&mut self, before: &mut Vec<Comment>) -> (Vec<Line>, Vec<Lead>) {
        let mut lines: Vec<Line> = Vec::new();
        loop {
            let between = self.between();
            let trail = lines.last_mut().map_or(&mut *before, |line| &mut line.trail);
            trail.extend(between.same);
            if matches!(self.kind(), Tok::RBrace | Tok::Eof) {
                return (lines, between.own);
            }
            let line = self.line(between.own);
            lines.push(line);
        }
    }

    fn line(&mut self, lead: Vec<Lead>) -> Line {
        let start = self.token().start;
        let gap = lead.last().map_or(self.last_end(), |lead| lead.comment.end);
        let mut line = Line {
            blank: newlines(self.text, gap, start) > 1,
            joined: newlines(self.text, self.last_end(), start) == 0,
            stmt: self.has(STMT) && !self.has(LINE),
            lead,
            ..Line::default()
        };
        let first = self.pos;
        let mut to_block = Vec::new();
        let mut after_block = false;
        while !self.line_ends(first) {
            if self.pos > first {
                let between = self.between();
                let moved = if after_block { Some(&mut to_block) } else { None };
                self.within_line(between, &mut line, moved);
            }
            let node = self.node(&mut to_block);
            after_block |= matches!(node, Node::Block(_));
            line.nodes.push(node);
        }
        line.lead.extend(to_block);
        line
    }

    fn line_ends(&self, first: usize) -> bool {
        let next_line = self.pos > first && self.has(LINE | STMT);
        next_line || matches!(self.kind(), Tok::RBrace | Tok::Eof)
    }

    /// Places comments from the middle of a line. Short ones stay. Others go in front of the line,
    /// or after a block of the line into `to_block`, which the next block takes.
    fn within_line(&self, between: Between, line: &mut Line, to_block: Option<&mut Vec<Lead>>) {
        let Line { lead, nodes, .. } = line;
        let moved = to_block.unwrap_or(lead);
        for comment in between.same {
            if self.is_note(comment) {
                nodes.push(Node::Note(comment));
            } else {
                moved.push(Lead { comment, blank: false });
            }
        }
        moved.extend(between.own);
    }

    fn node(&mut self, to_block: &mut Vec<Lead>) -> Node {
        let generic = self.kind() == Tok::Lt && self.has(GENERIC);
        match self.kind() {
            Tok::LBrace if self.has(BLOCK) => Node::Block(self.block(to_block)),
            Tok::LBrace | Tok::LParen | Tok::LBracket => Node::Group(self.group()),
            Tok::Lt if generic => Node::Group(self.group()),
            _ => {
                self.pos += 1;
                Node::Tok(self.pos - 1)
            }
        }
    }

    fn block(&mut self, to_block: &mut Vec<Lead>) -> Block {
        let open = self.pos;
        self.pos += 1;
        let mut open_trail = Vec::new();
        let (mut lines, mut end) = self.lines(&mut open_trail);
        let close = self.pos;
        self.pos += usize::from(self.kind() == Tok::RBrace);
        let tokens = &self.source.tokens;
        let one_line = newlines(self.text, tokens[open].start, tokens[close].start) == 0;
        let bare = open_trail.is_empty() && end.is_empty() && to_block.is_empty();
        let inline = one_line && bare && lines.iter().all(line_may_be_inline);
        let moved = std::mem::take(to_block);
        let place = lines.first_mut().map_or(&mut end, |line| &mut line.lead);
        place.splice(0..0, moved);
        Block { open, close, open_trail, lines, end, inline }
    }

    fn group(&mut self) -> Group {
        let open = self.pos;
        let list = self.has(LIST);
        self.pos += 1;
        let mut group = Group {
            open,
            close: open,
            list,
            fields: self.source.marks.has(open, FIELDS),
            open_trail: Vec::new(),
            items: Vec::new(),
            end: Vec::new(),
        };
        loop {
            let mut item = Item::default();
            self.item_start(&mut group, &mut item);
            if self.closes(open) {
                if !item.nodes.is_empty() {
                    self.last_notes(&mut group, item.nodes);
                }
                group.end = item.lead;
                break;
            }
            self.item(open, &mut item);
            group.items.push(item);
            if self.kind() == Tok::Comma {
                self.pos += 1;
            }
        }
        group.close = self.pos;
        self.pos += usize::from(self.kind() != Tok::Eof);
        group
    }

    /// Adds short comments before the closing bracket to the last item, or makes them the only
    /// item.
    fn last_notes(&self, group: &mut Group, notes: Vec<Node>) {
        match group.items.last_mut() {
            Some(last) => last.nodes.extend(notes),
            None => group.items.push(Item { nodes: notes, ..Item::default() }),
        }
    }

    fn closes(&self, open: usize) -> bool {
        let close = match self.source.tokens[open].kind {
            Tok::LParen => Tok::RParen,
            Tok::LBracket => Tok::RBracket,
            Tok::LBrace => Tok::RBrace,
            _ => Tok::Gt,
        };
        let generic = close != Tok::Gt || self.has(GENERIC);
        self.kind() == Tok::Eof || (self.kind() == close && generic)
    }

    /// Reads comments before an item. Comments on the line of the preceding bracket or comma go
    /// there.
    fn item_start(&mut self, group: &mut Group, item: &mut Item) {
        let between = self.between();
        for comment in between.same {
            if self.is_note(comment) {
                item.nodes.push(Node::Note(comment));
            } else {
                match group.items.last_mut() {
                    Some(last) => last.add_trail(comment),
                    None => group.open_trail.push(comment),
                }
            }
        }
        item.lead.extend(between.own);
    }

    /// Reads the rest of an item, up to its comma or the closing bracket.
    fn item(&mut self, open: usize, item: &mut Item) {
        let first = self.pos;
        let mut nothing = Vec::new();
        loop {
            if self.pos > first {
                let between = self.between();
                let ends = self.kind() == Tok::Comma || self.closes(open);
                self.within_item(between, ends, item);
                if ends {
                    return;
                }
            } else if self.kind() == Tok::Comma {
                return;
            }
            let node = self.node(&mut nothing);
            item.nodes.push(node);
        }
    }

    fn within_item(&self, between: Between, ends: bool, item: &mut Item) {
        for comment in between.same {
            if self.is_note(comment) {
                item.nodes.push(Node::Note(comment));
            } else if ends {
                item.add_trail(comment);
            } else {
                item.lead.push(Lead { comment, blank: false });
            }
        }
        item.lead.extend(between.own);
    }
}

fn line_may_be_inline(line: &Line) -> bool {
    let inline = |node: &Node| match node {
        Node::Block(block) => block.inline,
        Node::Group(group) => !is_forced(group),
        _ => true,
    };
    line.stmt && line.lead.is_empty() && line.trail.is_empty() && line.nodes.iter().all(inline)
}

/// Whether comments force a group onto several lines.
pub(super) fn is_forced(group: &Group) -> bool {
    let item = |item: &Item| {
        let nested = |node: &Node| matches!(node, Node::Group(group) if is_forced(group));
        !item.lead.is_empty() || !item.trail.is_empty() || item.nodes.iter().any(nested)
    };
    !group.open_trail.is_empty() || !group.end.is_empty() || group.items.iter().any(item)
}

/// The text of a comment with plain line ends and without spaces at line ends.
pub(super) fn comment_text(text: &str, comment: Comment) -> String {
    let lines: Vec<&str> =
        part(text, comment.start, comment.end).lines().map(str::trim_end).collect();
    lines.join("\n")
}
