//! A program's graph as a picture: blocks by depth, what they test and what becomes of packets.

use super::layout::{HEIGHT, Layout, WIDTH};
use super::say::{Bound, Speaker, end_text};
use super::{Classes, Program};
use crate::xml::escaped;
use braid_ir::chain::Chain;
use braid_ir::residual::{End, Residual};
use std::fmt::Write as _;

/// Most blocks of a program that are drawn.
const MOST_BLOCKS: usize = 400;

/// Most characters of a block's text.
const MOST_TEXT: usize = 40;

/// The programs of a chain as one SVG document, one below the other. Of a program with more than 400
/// blocks the first ones are drawn, and that is said.
#[must_use]
pub fn svg(chain: &Chain, classes: &Classes) -> String {
    let mut body = String::new();
    body += "<text x='20' y='20'>What is tested, and where it leads: <tspan class='if'>solid</tspan> if \
             it holds, <tspan class='else'>dashed</tspan> if not</text>\n";
    let (mut top, mut right) = (36, 600);
    for entry in &classes.entries {
        for program in &entry.programs {
            let title = title(&entry.interface, program);
            let _ = writeln!(
                body,
                "<text x='20' y='{}' class='title'>{}</text>",
                top + 16,
                escaped(&title)
            );
            let (width, height) = draw(&mut body, chain, &program.residual, top + 36);
            top += 36 + height + 30;
            right = right.max(width);
        }
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{right}' height='{top}' \
         viewBox='0 0 {right} {top}' font-family='sans-serif' font-size='11'>\n\
         <style>.title{{font-size:14px;font-weight:bold}} .test{{fill:#eef3ff;stroke:#5470b0}} \
         .end{{fill:#eefaee;stroke:#4f8f4f}} .drop{{fill:#fdeeee;stroke:#b05050}} \
         .yes{{stroke:#4f8f4f}} .no{{stroke:#b05050;stroke-dasharray:4 3}} .on{{stroke:#888}} \
         .if{{fill:#4f8f4f}} .else{{fill:#b05050}} polyline{{fill:none;stroke-width:1.2}}</style>\n\
         <rect width='100%' height='100%' fill='white'/>\n{body}</svg>\n"
    )
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

/// Draws a program; its extent.
fn draw(out: &mut String, chain: &Chain, program: &Residual, top: usize) -> (usize, usize) {
    let layout = Layout::of(program, program.blocks.len().min(MOST_BLOCKS), top);
    for (kind, points) in &layout.lines {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let _ = writeln!(out, "<polyline points='{}' class='{kind}'/>", points.join(" "));
    }
    let (speaker, none) = (Speaker::new(chain, program), Bound::new());
    for (block, (x, y)) in program.blocks.iter().zip(&layout.places) {
        let (class, text) = match &block.end {
            End::Branch { cond, .. } => ("test", speaker.on(&none).condition(*cond)),
            End::Jump(_) => ("test", format!("{} steps", block.steps.len())),
            end if super::is_drop(end) => ("drop", end_text(chain, end)),
            end => ("end", end_text(chain, end)),
        };
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect x='{x}' y='{y}' width='{WIDTH}' height='{HEIGHT}' rx='4' \
             class='{class}'/><text x='{}' y='{}'>{}</text></g>",
            escaped(&text),
            x + 8,
            y + 21,
            escaped(&short(&text))
        );
    }
    layout.size
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
