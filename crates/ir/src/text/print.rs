//! Prints models.

use super::decl;
use super::ops;
use super::value::{list, name};
use crate::model::{Block, Model, Program, ValueId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The text form of a model.
#[must_use]
pub fn print(model: &Model) -> String {
    let mut out = format!("model {} {{\n", name(&model.name));
    decl::print(model, &mut out);
    section(&mut out, model, "packet", &model.packet);
    for (state, program) in &model.expire {
        section(&mut out, model, &format!("expire {}", model.state_word(*state)), program);
    }
    for timer in &model.timers {
        let period = decl::period(model, timer);
        section(&mut out, model, &format!("every {period}"), &timer.body);
    }
    for (event, program) in &model.streams {
        section(&mut out, model, &format!("stream {}", event.word()), program);
    }
    for (event, program) in &model.handlers {
        section(&mut out, model, &format!("on {}", model.event_word(*event)), program);
    }
    out + "}\n"
}

fn section(out: &mut String, model: &Model, head: &str, program: &Program) {
    let _ = writeln!(out, "  {head} {{");
    out.push_str(&print_program(model, program));
    out.push_str("  }\n");
}

/// The text form of one program of a model, without the braces of its section.
#[must_use]
pub fn print_program(model: &Model, program: &Program) -> String {
    let mut out = String::new();
    let unused = undefined(program);
    if !unused.is_empty() {
        let all = list(unused, |value| ops::typed(program, value));
        let _ = writeln!(out, "    unused {all}");
    }
    for (index, block) in program.blocks.iter().enumerate() {
        print_block(&mut out, model, program, index, block);
    }
    out
}

fn print_block(out: &mut String, model: &Model, program: &Program, index: usize, block: &Block) {
    let _ = write!(out, "  b{index}");
    if !block.params.is_empty() {
        let _ = write!(out, "({})", list(&block.params, |value| ops::typed(program, *value)));
    }
    out.push_str(":\n");
    for op in &block.ops {
        let _ = writeln!(out, "    {}", ops::print_op(model, program, op));
    }
    let _ = writeln!(out, "    {}", ops::print_term(model, &block.term));
}

/// Values with a type but no definition.
fn undefined(program: &Program) -> Vec<ValueId> {
    let mut defined = BTreeSet::new();
    for block in &program.blocks {
        defined.extend(block.params.iter().copied());
        defined.extend(block.ops.iter().flat_map(crate::model::Op::outs));
    }
    let all = (0..).map(ValueId).take(program.values.len());
    all.filter(|value| !defined.contains(value)).collect()
}
