//! A program's graph as a picture: blocks by depth, with their tests and the fates of packets.

use super::data::{Classes, Program, is_drop};
use super::layout::{HEIGHT, Layout, WIDTH};
use super::say::{Bound, Speaker, end_text};
use crate::picture::{Labelled, Picture};
use braid_ir::chain::Chain;
use braid_ir::residual::{End, Residual};

/// The largest number of blocks of a program that are drawn.
const MOST_BLOCKS: usize = 400;

/// The largest number of characters of a block's text.
const MOST_TEXT: usize = 40;

/// The left edge of titles, and the space between programs.
const MARGIN: usize = 20;
/// The distance from the top of a title to the first block.
const TITLE: usize = 36;
/// The space below a program.
const BELOW: usize = 30;

const STYLE: &str = ".title{font-size:14px;font-weight:bold} .test{fill:#eef3ff;stroke:#5470b0} \
    .end{fill:#eefaee;stroke:#4f8f4f} .drop{fill:#fdeeee;stroke:#b05050} \
    .yes{stroke:#4f8f4f} .no{stroke:#b05050;stroke-dasharray:4 3} .on{stroke:#888} \
    .if{fill:#4f8f4f} .else{fill:#b05050} polyline{stroke-width:1.2}";

/// Draws the programs of a chain as one SVG document, one below the other. If a program has more
/// than 400 blocks, it draws the first 400, and the title says so.
#[must_use]
pub fn svg(chain: &Chain, classes: &Classes) -> String {
    let mut picture = Picture::at_least((600, TITLE));
    picture.spans(
        (MARGIN, MARGIN),
        &[
            ("", "Each box is a test or an end: "),
            ("if", "solid"),
            ("", " lines if the test holds, "),
            ("else", "dashed"),
            ("", " lines if not"),
        ],
    );
    let mut top = TITLE;
    for entry in &classes.entries {
        for program in &entry.programs {
            picture.text((MARGIN, top + 16), "title", &title(&entry.interface, program));
            top += TITLE + draw(&mut picture, chain, &program.residual, top + TITLE) + BELOW;
        }
    }
    picture.reach((0, top));
    picture.document(0, 11, STYLE)
}

fn title(interface: &str, program: &Program) -> String {
    let headers = if program.present.is_empty() {
        "other headers".to_owned()
    } else {
        program.present.join(" ")
    };
    let drawn = program.blocks.min(MOST_BLOCKS);
    let part =
        if drawn < program.blocks { format!(", the first {drawn} drawn") } else { String::new() };
    format!("from {interface}: {headers} ({} blocks{part})", program.blocks)
}

/// Draws a program and returns its height.
fn draw(picture: &mut Picture, chain: &Chain, program: &Residual, top: usize) -> usize {
    let layout = Layout::of(program, program.blocks.len().min(MOST_BLOCKS), top);
    for (kind, points) in &layout.lines {
        picture.line(kind, points);
    }
    let (speaker, none) = (Speaker::new(chain, program), Bound::new());
    for (block, at) in program.blocks.iter().zip(&layout.places) {
        let (class, text) = match &block.end {
            End::Branch { cond, .. } => ("test", speaker.on(&none).condition(*cond)),
            End::Jump(_) => ("test", format!("{} steps", block.steps.len())),
            end if is_drop(end) => ("drop", end_text(chain, end)),
            end => ("end", end_text(chain, end)),
        };
        picture.labelled(&Labelled {
            at: *at,
            size: (WIDTH, HEIGHT),
            class,
            text: &short(&text),
            hint: Some(&text),
            centred: false,
        });
    }
    picture.reach((layout.size.0, 0));
    layout.size.1
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
