//! Operations that look values up, call an extern, use a pool, publish an event or send a packet.

use super::instance::{Instance, Shard};
use super::run::{Emission, Env, Origin, Role, Run, on_event};
use braid_externs::patterns::Match;
use braid_externs::{CallCtx, MAX_RESULTS, Pool, Rng};
use braid_ir::engine::{Content, Event, Fault};
use braid_ir::model::{
    Area, Dest, EventArg, EventId, Haystack, Model, NewPacket, Op, ParamId, Program, ValueId, Word,
};
use braid_ir::show::{max_of, text_of};
use braid_ir::subscriptions::Subscriber;
use braid_ir::value::ParamValue;
use braid_packet::{Packet, build_with_options};

/// Looks values up: in rules, routes and patterns, or by an extern.
pub(super) fn lookup_op(run: &mut Run<'_>, program: &Program, op: &Op) -> Result<(), Fault> {
    match op {
        Op::Rules { pass, rule, param } => {
            let (passes, number) = decide(run.env.instance, &run.role, *param);
            run.define(*pass, Word::from(passes));
            run.define(*rule, Word::from(number));
        }
        Op::Route { found, hop, param, addr } => {
            let width = program.values[addr.index()].width;
            let hop_number = route(run.env.param(*param), width, run.value(*addr));
            run.define(*found, Word::from(hop_number.is_some()));
            run.define(*hop, Word::from(hop_number.unwrap_or(0)));
        }
        Op::Patterns { found, number, param } => {
            let first = patterns(run.env.param(*param), payload(&run.role)?);
            run.define(*found, Word::from(first.is_some()));
            run.define(*number, Word::from(first.unwrap_or(0)));
        }
        Op::FindPatterns { outs: [found, places @ ..], param, of } => {
            let (begin, bytes) = searched(run, of)?;
            let first = place(run.env.param(*param), &bytes);
            run.define(*found, Word::from(first.is_some()));
            let place = first.map_or([0; 3], |first| {
                let [start, end] = [first.start, first.end].map(|at| (begin + at) as Word);
                [Word::from(first.number), start, end]
            });
            run.define_all(places, &place);
        }
        Op::InStrings { out, param, len, words } => {
            let words: Vec<Word> = words.iter().map(|word| run.value(*word)).collect();
            let is_in = in_strings(run.env.param(*param), run.value(*len), &words);
            run.define(*out, is_in.into());
        }
        Op::LoadBytes { found, out, area, offset } => {
            let bytes = usize::from(program.values[out.index()].width / 8);
            let number = number_at(&run.role, (*area, run.value(*offset)), bytes)?;
            run.define(*found, Word::from(number.is_some()));
            run.define(*out, number.unwrap_or(0));
        }
        Op::LoadString { found, outs, area, offset, len } => {
            let mut words = vec![0; outs.len()];
            let place = (*area, run.value(*offset));
            let there = match &run.role {
                Role::Packet(state) => state.string(place, run.value(*len), &mut words),
                Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => Ok(false),
            };
            run.define(*found, there.map_err(|_| Fault::Truncated)?.into());
            run.define_all(outs, &words);
        }
        Op::Extern { outs, name, param, args } => {
            let args: Vec<_> = args
                .iter()
                .map(|arg| (run.value(*arg), program.values[arg.index()].width))
                .collect();
            let results = call_extern(run, name, *param, &args)?;
            for (out, result) in outs.iter().zip(results) {
                run.define(*out, result & max_of(program.values[out.index()].width));
            }
        }
        _ => {}
    }
    Ok(())
}

/// The bytes that a search looks at, and where they begin.
fn searched(run: &Run<'_>, of: &Haystack) -> Result<(usize, Vec<u8>), Fault> {
    Ok(match of {
        Haystack::Payload => (0, payload(&run.role)?.to_vec()),
        Haystack::Part(first, last) => {
            let (first, last) = (run.value(*first) as usize, run.value(*last) as usize);
            let bytes = payload(&run.role)?.iter().take(last + 1).skip(first);
            (first, bytes.copied().collect())
        }
        Haystack::Text(len, words) => {
            let words: Vec<Word> = words.iter().map(|word| run.value(*word)).collect();
            (0, string(run.value(*len), &words))
        }
    })
}

/// Whether the packet passes a rule set, and the number of the rule that decides. Also counts the
/// rule.
fn decide(instance: &mut Instance, role: &Role, param: ParamId) -> (bool, u32) {
    let ParamValue::Rules(set) = &instance.params[param.index()] else { return (false, 0) };
    let none = u32::try_from(set.rules.len()).unwrap_or(u32::MAX);
    let packet = match role {
        Role::Packet(state) => state.for_rules(),
        Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => None,
    };
    let Some(packet) = packet else { return (false, none) };
    let (pass, number) = set.decide(&packet);
    let counts = instance.counters.rules.get_mut(&param.0);
    if let Some(count) = counts.and_then(|counts| counts.get_mut(number as usize)) {
        *count += 1;
    }
    (pass, number)
}

fn route(routes: &ParamValue, width: u16, addr: Word) -> Option<u32> {
    let ParamValue::Routes(table) = routes else { return None };
    match width {
        32 => table.lookup4(u32::try_from(addr).ok()?),
        _ => table.lookup6(addr),
    }
}

fn patterns(patterns: &ParamValue, payload: &[u8]) -> Option<u32> {
    match patterns {
        ParamValue::Patterns(set) => set.lowest_match(payload),
        _ => None,
    }
}

fn place(patterns: &ParamValue, payload: &[u8]) -> Option<Match> {
    match patterns {
        ParamValue::Patterns(set) => set.first_match(payload),
        _ => None,
    }
}

/// The bytes of a string from its length and its words.
pub(super) fn string(len: Word, words: &[Word]) -> Vec<u8> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    words.iter().flat_map(|word| word.to_be_bytes()).take(len).collect()
}

/// Whether a set has a string. Compares it with each entry, without the tables of the set.
fn in_strings(set: &ParamValue, len: Word, words: &[Word]) -> bool {
    let ParamValue::Strings(set) = set else { return false };
    let string = string(len, words);
    if !set.is_of_hosts() {
        return set.iter().any(|(_, entry)| *entry == string);
    }
    let string = string.to_ascii_lowercase();
    let name = string.strip_suffix(b".").unwrap_or(&string);
    set.iter().any(|(below, entry)| match below {
        true => name.strip_suffix(entry).is_some_and(|front| front.ends_with(b".")),
        false => name == entry,
    })
}

fn payload(role: &Role) -> Result<&[u8], Fault> {
    match role {
        Role::Packet(state) => state.payload().ok_or(Fault::Truncated),
        Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => Ok(&[]),
    }
}

/// The number in some bytes of an area. `None` if the area ends before.
fn number_at(role: &Role, place: (Area, Word), bytes: usize) -> Result<Option<Word>, Fault> {
    match role {
        Role::Packet(state) => state.number(place, bytes).map_err(|_| Fault::Truncated),
        Role::Timer | Role::Expire(..) | Role::Stream(_) | Role::Handler(_) => Ok(None),
    }
}

fn call_extern(
    run: &mut Run<'_>,
    name: &str,
    param: Option<ParamId>,
    args: &[(Word, u16)],
) -> Result<[Word; MAX_RESULTS], Fault> {
    let Some(operator) = braid_externs::lookup(name) else { return Ok([0; MAX_RESULTS]) };
    let payload: &[u8] = match &run.role {
        Role::Packet(state) if operator.signature.reads_payload() => {
            state.payload().ok_or(Fault::Truncated)?
        }
        _ => &[],
    };
    let instance = &mut *run.env.instance;
    let list = param.and_then(|param| match &instance.params[param.index()] {
        ParamValue::Backends(all) => Some(all),
        _ => None,
    });
    let shard = &mut instance.shards[run.env.shard];
    Ok(operator.call(&mut CallCtx {
        args,
        payload,
        backends: list.map(|all| all as &dyn braid_externs::Backends),
        rng: &mut shard.rng,
        cache: shard.caches.entry(param).or_default(),
    }))
}

/// Takes from a pool, or returns to it.
pub(super) fn pool_op(run: &mut Run<'_>, op: &Op) -> Result<(), Fault> {
    match op {
        Op::Take { ok, out, pool } => {
            let member = with_pool(run.env.shard(), *pool, None, Pool::take);
            run.define(*ok, Word::from(member.is_some()));
            run.define(*out, member.unwrap_or(0));
        }
        Op::TakeThis { ok, pool, a } => {
            let value = run.value(*a);
            let done = with_pool(run.env.shard(), *pool, false, |pool, _| pool.take_this(value));
            run.define(*ok, Word::from(done));
        }
        Op::Release { pool, a } => {
            let value = run.value(*a);
            with_pool(run.env.shard(), *pool, false, |pool, _| pool.release(value));
        }
        _ => {}
    }
    Ok(())
}

fn with_pool<T>(
    shard: &mut Shard,
    pool: ParamId,
    none: T,
    act: impl FnOnce(&mut Pool, &mut Rng) -> T,
) -> T {
    match shard.pools.get_mut(&pool) {
        Some(members) => act(members, &mut shard.rng),
        None => none,
    }
}

/// Publishes an event, and runs its handlers.
pub(super) fn publish(run: &mut Run<'_>, model: &Model, event: EventId, args: &[EventArg]) {
    let decl = &model.events[event.index()];
    let value = |arg: &EventArg| match arg {
        EventArg::Value(id) => Content::Word(run.value(*id)),
        EventArg::Str(text) => Content::Str(text.clone()),
        EventArg::Bytes(values) => {
            let mut words = values.iter().map(|value| run.value(*value));
            Content::Str(text_of(words.next().unwrap_or(0), words))
        }
        EventArg::Param(param) => match run.env.param(*param) {
            ParamValue::Str(text) => Content::Str(text.clone()),
            _ => Content::Str(String::new()),
        },
    };
    let published = Event::new(decl, (run.env.now, run.env.node), args.iter().map(value));
    run.env.out.event(published);
    let word = |arg: &EventArg| match arg {
        EventArg::Value(id) => run.value(*id),
        _ => 0,
    };
    let fields: Vec<Word> = args.iter().map(word).collect();
    deliver(&mut run.env, event, &fields);
}

/// Runs the handlers for an event with these fields, in the order of their functions. Each of them
/// runs to its end, with the handlers of the events that it publishes, before the next one starts.
pub(super) fn deliver(env: &mut Env<'_>, event: EventId, fields: &[Word]) {
    for Subscriber { node, handler } in env.others.takers(env.node, event) {
        // Events do not go round in circles, so the function is not at work.
        let Some((instance, others)) = env.others.again().take(node) else { continue };
        let model = instance.model.clone();
        let env = Env {
            node,
            worker: env.worker,
            shard: instance.shard(env.worker),
            now: env.now,
            instance,
            others,
            expiries: env.expiries,
            ids: env.ids,
            out: env.out,
            observer: env.observer,
        };
        let (_, program) = &model.handlers[handler];
        on_event(env, fields, program);
    }
}

/// Sends a copy of the current packet.
pub(super) fn mirror(run: &mut Run<'_>, dest: Dest) -> Result<(), Fault> {
    if let Role::Packet(state) = &run.role {
        emit_packet(run, dest, state.now.clone(), Origin::Copied);
    }
    Ok(())
}

/// Sends a new packet.
pub(super) fn create(run: &mut Run<'_>, new: &NewPacket, dest: Dest) -> Result<(), Fault> {
    let fields: Vec<_> = new.fields.iter().map(|(f, id)| (*f, run.value(*id))).collect();
    let Role::Packet(state) = &run.role else { return Ok(()) };
    let back = new.goes_back(dest);
    let option = |(option, values): &(_, Vec<ValueId>)| {
        (*option, values.iter().map(|value| run.value(*value)).collect())
    };
    let options: Vec<_> = new.options.iter().map(option).collect();
    let built = build_with_options(&state.now, new.shape, back, &fields, &options, new.payload);
    emit_packet(run, dest, built.ok_or(Fault::Truncated)?, Origin::Built);
    Ok(())
}

/// Sends a packet when the function has finished.
pub(super) fn emit_packet(run: &mut Run<'_>, dest: Dest, packet: Packet, origin: Origin) {
    run.env.observer.send(run.env.node, dest, &packet, origin != Origin::Copied);
    run.emissions.push(Emission { dest, packet, origin });
}
