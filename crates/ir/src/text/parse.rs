//! Parses the declarations of models. `parse_ops` parses the programs.

use super::decl::{PROFILE_FLAGS, sum_word};
use super::names::resolve;
use super::parse_ops::program;
use super::parse_value::{columns, event_ty, field, param_ty, param_value, setting, ty};
use super::scan::{Result, Scan, TextError};
use crate::model::{
    Ancestor, EventDecl, EventId, Granularity, Model, ParamDecl, ParamId, QueueDecl, RowDecl,
    Setting, StateDecl, StateId, StreamEvent, Sum, TagDecl, Timer, WhenFull,
};
use crate::native::{Checks, FieldSet, Keeps, Native, OnFailure, Profile, Reference};
use braid_packet::Field;

/// Parses the text form of a model. Names are declared before they are used. The result may not
/// verify.
///
/// # Errors
/// The first violation of the syntax in `docs/ir.md`, with its position.
pub fn parse(text: &str) -> std::result::Result<Model, TextError> {
    let mut scan = Scan::new(text);
    scan.expect_word("model")?;
    let mut model = Model::new(scan.name()?);
    scan.expect("{")?;
    let mut partners = Vec::new();
    while !scan.eat("}") {
        declaration(&mut scan, &mut model, &mut partners)?;
    }
    for (index, word, place) in partners {
        let partner = state_named(&model, word);
        match model.state.get_mut(index).filter(|_| partner.is_some()) {
            Some(state) => state.lives_with = partner,
            None => return scan.error_at(place, format!("no state `{word}`")),
        }
    }
    if scan.at_end() { Ok(model) } else { scan.error("expected nothing behind the model") }
}

/// States that live with other states: the number of the state, the name of the other state, and
/// the position of that name. The other state may be declared later.
type Partners<'a> = Vec<(usize, &'a str, usize)>;

fn declaration<'a>(
    scan: &mut Scan<'a>,
    model: &mut Model,
    partners: &mut Partners<'a>,
) -> Result<()> {
    match scan.word()? {
        "ports" => {
            model.ports = vec![scan.name()?];
            while scan.eat(",") {
                model.ports.push(scan.name()?);
            }
        }
        "param" => {
            let param = param(scan)?;
            model.params.push(param);
        }
        "state" => {
            let (state, partner) = state(scan, model)?;
            partners.extend(partner.map(|(word, place)| (model.state.len(), word, place)));
            model.state.push(state);
        }
        "queue" => {
            let name = scan.name()?;
            scan.expect_word("capacity")?;
            let capacity = setting(scan, model)?;
            model.queues.push(QueueDecl { name, capacity });
        }
        "event" => model.events.push(event(scan)?),
        "tag" => {
            let name = scan.name()?;
            scan.expect(":")?;
            model.tags.push(TagDecl { name, ty: ty(scan)? });
        }
        "row" => {
            let label = scan.string()?;
            let line = if scan.eat_word("line") { scan.number()? } else { 0 };
            let text = if scan.eat_word("text") { scan.string()? } else { String::new() };
            model.rows.push(RowDecl { label, text, line });
        }
        "reason" => model.reasons.push(scan.string()?),
        "native" => model.native = Some(native(scan)?),
        "packet" => model.packet = program(scan, model)?,
        "expire" => {
            let state = state_ref(scan, model)?;
            let program = program(scan, model)?;
            model.expire.push((state, program));
        }
        "stream" => {
            let word = scan.word()?;
            let event = StreamEvent::ALL.into_iter().find(|event| event.word() == word);
            let Some(event) = event else {
                return scan.wrong("expected an event of a connection, such as `open`");
            };
            model.streams.push((event, program(scan, model)?));
        }
        "on" => {
            let event = event_ref(scan, model)?;
            model.handlers.push((event, program(scan, model)?));
        }
        "every" => {
            let period = setting(scan, model)?;
            let body = program(scan, model)?;
            model.timers.push(Timer { period, body });
        }
        word => return scan.wrong(format!("`{word}` is not a declaration")),
    }
    Ok(())
}

fn native(scan: &mut Scan<'_>) -> Result<Native> {
    let (library, function) = (scan.string()?, scan.string()?);
    let mut checks = Checks::default();
    if scan.eat_word("checks") {
        scan.expect("(")?;
        scan.items(")", |scan| {
            match scan.word()? {
                "records" => checks.records = true,
                "observe" => checks.observe = true,
                _ => return scan.wrong("expected `records` or `observe`"),
            }
            Ok(())
        })?;
    }
    let mut isolated = None;
    if scan.eat_word("isolated") {
        isolated = Some(match scan.word()? {
            "drop" => OnFailure::Drop,
            "bypass" => OnFailure::Bypass,
            _ => return scan.wrong("expected `drop` or `bypass`"),
        });
    }
    let mut profile = None;
    if scan.eat_word("profile") {
        scan.expect("(")?;
        let mut found = Profile::default();
        scan.items(")", |scan| profile_part(scan, &mut found))?;
        profile = Some(found);
    }
    let sends = if scan.eat_word("sends") { scan.number()? } else { 0 };
    let mut keeps = Keeps::default();
    if scan.eat_word("keeps") {
        let word = scan.word()?;
        match Keeps::NAMES.iter().find(|(_, name)| *name == word) {
            Some((known, _)) => keeps = *known,
            None => return scan.wrong("expected what the function keeps"),
        }
    }
    let reference = Reference { library, function, checks, isolated };
    Ok(Native { reference, profile, sends, keeps })
}

fn profile_part(scan: &mut Scan<'_>, profile: &mut Profile) -> Result<()> {
    let word = scan.word()?;
    let rest = if matches!(word, "read" | "write") { scan.dotted()? } else { "" };
    let whole = format!("{word} {rest}");
    if let Some((_, flag)) = PROFILE_FLAGS.iter().find(|(known, _)| *known == whole.trim_end()) {
        *flag(profile) = true;
        return Ok(());
    }
    let fields = if word == "read" { &mut profile.reads } else { &mut profile.writes };
    match (rest, Field::by_name(rest)) {
        ("fields", _) => *fields = FieldSet::ALL,
        (_, Some(field)) => fields.insert(field),
        (_, None) => return scan.wrong(format!("`{}` is no part of a profile", whole.trim_end())),
    }
    Ok(())
}

/// Parses a parameter, in the form of [`super::print_param`].
///
/// # Errors
/// The first violation of the syntax, with its position.
pub fn parse_param(text: &str) -> std::result::Result<ParamDecl, TextError> {
    let mut scan = Scan::new(text);
    let made = param(&mut scan)?;
    if scan.at_end() { Ok(made) } else { scan.error("expected nothing behind the parameter") }
}

fn param(scan: &mut Scan<'_>) -> Result<ParamDecl> {
    let name = scan.name()?;
    scan.expect(":")?;
    let ty = param_ty(scan)?;
    let default = if scan.eat("=") { Some(param_value(scan)?) } else { None };
    Ok(ParamDecl { name, ty, default })
}

fn event(scan: &mut Scan<'_>) -> Result<EventDecl> {
    let name = scan.name()?;
    let mut ancestors = Vec::new();
    if scan.eat_word("extends") {
        ancestors.push(ancestor(scan)?);
        while scan.eat(",") {
            ancestors.push(ancestor(scan)?);
        }
    }
    scan.expect("{")?;
    let fields = scan.items("}", |scan| {
        let name = scan.name()?;
        scan.expect(":")?;
        Ok((name, event_ty(scan)?))
    })?;
    Ok(EventDecl { name, ancestors, fields })
}

fn event_ref(scan: &mut Scan<'_>, model: &Model) -> Result<EventId> {
    let word = scan.word()?;
    match resolve("event", model.events.iter().map(|decl| &*decl.name), word) {
        Some(event) => Ok(EventId(event)),
        None => scan.wrong(format!("no event `{word}`")),
    }
}

fn ancestor(scan: &mut Scan<'_>) -> Result<Ancestor> {
    let name = scan.name()?;
    let mut fields = 0;
    if scan.eat("(") {
        fields = scan.number()?;
        scan.expect(")")?;
    }
    Ok(Ancestor { name, fields })
}

fn state_ref(scan: &mut Scan<'_>, model: &Model) -> Result<StateId> {
    let word = scan.word()?;
    match state_named(model, word) {
        Some(state) => Ok(state),
        None => scan.wrong(format!("no state `{word}`")),
    }
}

fn state_named(model: &Model, word: &str) -> Option<StateId> {
    resolve("state", model.state.iter().map(|decl| &*decl.name), word).map(StateId)
}

/// A state, and the name of the state that it lives with, with the name's position.
fn state<'a>(scan: &mut Scan<'a>, model: &Model) -> Result<(StateDecl, Option<(&'a str, usize)>)> {
    let name = scan.name()?;
    scan.expect(":")?;
    let slots = columns(scan)?;
    let mut state = StateDecl::new(name, granularity(scan)?, slots);
    if scan.eat_word("default") {
        scan.expect("(")?;
        state.default = Some(scan.items(")", |scan| setting(scan, model))?);
    }
    let mut partner = None;
    loop {
        if scan.eat_word("lives") {
            scan.expect_word("with")?;
            partner = Some((scan.word()?, scan.last()));
        } else if !state_option(scan, model, &mut state)? {
            return Ok((state, partner));
        }
    }
}

/// Reads an option of a state, if there is one more.
fn state_option(scan: &mut Scan<'_>, model: &Model, state: &mut StateDecl) -> Result<bool> {
    if scan.eat_word("idle") {
        state.idle = Some(setting(scan, model)?);
    } else if scan.eat_word("hard") {
        state.hard = Some(setting(scan, model)?);
    } else if scan.eat_word("capacity") {
        state.capacity = setting(scan, model)?;
    } else if scan.eat_word("full") {
        state.when_full = match scan.word()? {
            "refuse" => WhenFull::Refuse,
            "evict_oldest" => WhenFull::EvictOldest,
            _ => return scan.wrong("expected `refuse` or `evict_oldest`"),
        };
    } else if scan.eat_word("tick") {
        state.tick = setting(scan, model)?;
    } else if scan.eat_word("sharded") {
        state.sharded = true;
    } else if scan.eat_word("portions") {
        scan.expect("(")?;
        state.portions = scan.items(")", |scan| portion(scan, model))?;
    } else if scan.eat_word("sums") {
        scan.expect("(")?;
        state.sums = scan.items(")", sum)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// How listings unite the values of a slot.
fn sum(scan: &mut Scan<'_>) -> Result<Sum> {
    let word = scan.word()?;
    let known = [Sum::Add, Sum::First, Sum::Last];
    match known.into_iter().find(|sum| sum_word(*sum) == word) {
        Some(sum) => Ok(sum),
        None => scan.wrong("expected `add`, `first` or `last`"),
    }
}

/// A parameter that workers divide.
fn portion(scan: &mut Scan<'_>, model: &Model) -> Result<ParamId> {
    match setting(scan, model)? {
        Setting::Param(param) => Ok(param),
        Setting::Const(_) => scan.wrong("expected the name of a parameter"),
    }
}

fn granularity(scan: &mut Scan<'_>) -> Result<Granularity> {
    if scan.eat_word("global") {
        return Ok(Granularity::Global);
    }
    scan.expect_word("per")?;
    if scan.eat_word("flow") {
        Ok(Granularity::Flow)
    } else if scan.eat_word("biflow") {
        Ok(Granularity::Biflow)
    } else if scan.eat("[") {
        scan.items("]", ty).map(Granularity::Key)
    } else {
        scan.expect("(")?;
        scan.items(")", field).map(Granularity::Fields)
    }
}
