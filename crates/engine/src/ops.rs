//! Operations that models and residual programs share.
#![expect(
    clippy::indexing_slicing,
    reason = "a verified model refers only to its declarations, and values have their types"
)]

use crate::exec_context::ExecContext;
use crate::scratch::Published;
use crate::work::{Emission, Origin, Work};
use braid_externs::{Backend as _, CallCtx, MAX_RESULTS};
use braid_ir::arith::{binary, compare};
use braid_ir::engine::{Content, Event, Fault};
use braid_ir::model::{
    Association, Dest, EventArg, EventId, Haystack, KeyRef, MAX_STRING_WORDS, NewPacket, Op,
    ParamId, SetRef, TagId, ValueId, Word,
};
use braid_ir::show::text_of;
use braid_ir::strings::{MAX_STRING, bytes_of, part};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_packet::replace::replace;
use braid_packet::translate::{self, Addresses};
use braid_packet::{Field, Header, build_with_options, crypt, options, tunnel};

/// Executes an operation on values and parameters. Returns false for other operations.
pub(crate) fn pure(params: &[ParamValue], values: &mut Values<'_>, op: &Op) -> Result<bool, Fault> {
    let (out, value) = match op {
        Op::Const { out, value } => (out, *value),
        Op::Param { out, param } => match &params[param.index()] {
            ParamValue::Scalar(value) => (out, *value),
            _ => (out, 0),
        },
        Op::ListLen { out, param } => (out, list_len(params, *param) as Word),
        Op::ListGet { out, param, index, column } => {
            (out, list_get(params, *param, values.get(*index), *column)?)
        }
        Op::BackendUp { out, param, index } => {
            (out, Word::from(backend_up(params, *param, values.get(*index))?))
        }
        Op::Bin { out, op, a, b } => {
            (out, binary(*op, values.width(*out), values.get(*a), values.get(*b))?)
        }
        Op::Cmp { out, op, a, b } => {
            (out, Word::from(compare(*op, values.get(*a), values.get(*b))))
        }
        Op::Not { out, a } => (out, !values.get(*a) & values.ty(*out).max()),
        Op::Resize { out, a } => (out, values.get(*a) & values.ty(*out).max()),
        Op::Clamp { out, a } => (out, values.get(*a).min(values.ty(*out).max())),
        Op::Select { out, cond, a, b } => {
            (out, values.get(if values.truth(*cond) { *a } else { *b }))
        }
        Op::InSet { out, a, set } => (out, Word::from(in_set(params, values.get(*a), set))),
        _ => return Ok(false),
    };
    values.set(*out, value);
    Ok(true)
}

/// Searches bytes, which begin at a place of their haystack, for patterns.
fn find(params: &[ParamValue], values: &mut Values<'_>, op: &Op, (begin, bytes): (usize, &[u8])) {
    let Op::FindPatterns { outs: [found, places @ ..], param, .. } = op else { return };
    let first = match &params[param.index()] {
        ParamValue::Patterns(set) => set.first_match(bytes),
        _ => None,
    };
    values.set(*found, first.is_some().into());
    let place = first.map_or([0; 3], |first| {
        let [start, end] = [first.start, first.end].map(|at| (begin + at) as Word);
        [first.number.into(), start, end]
    });
    values.set_all(places, &place);
}

fn list_len(params: &[ParamValue], param: ParamId) -> usize {
    match &params[param.index()] {
        ParamValue::List(rows) => rows.len(),
        ParamValue::Backends(all) => all.len(),
        _ => 0,
    }
}

pub(crate) fn list_get(
    params: &[ParamValue],
    param: ParamId,
    index: Word,
    column: u32,
) -> Result<Word, Fault> {
    let index = usize::try_from(index).map_err(|_| Fault::Index)?;
    let row = match &params[param.index()] {
        ParamValue::List(rows) => rows.get(index),
        ParamValue::Backends(all) => all.get(index).map(|one| &one.columns),
        _ => None,
    };
    Ok(row.ok_or(Fault::Index)?[column as usize])
}

fn backend_up(params: &[ParamValue], param: ParamId, index: Word) -> Result<bool, Fault> {
    let index = usize::try_from(index).map_err(|_| Fault::Index)?;
    match &params[param.index()] {
        ParamValue::Backends(all) => Ok(all.get(index).ok_or(Fault::Index)?.is_up()),
        _ => Err(Fault::Index),
    }
}

fn in_set(params: &[ParamValue], value: Word, set: &SetRef) -> bool {
    match set {
        SetRef::Const(members) => members.contains(value),
        SetRef::Param(param) => match &params[param.index()] {
            ParamValue::Set(members) => members.contains(value),
            _ => false,
        },
        SetRef::List(param, column) => {
            let column = *column as usize;
            match &params[param.index()] {
                ParamValue::List(rows) => rows.iter().any(|row| row[column] == value),
                ParamValue::Backends(all) => {
                    all.iter().any(|one| !one.is_removed() && one.columns[column] == value)
                }
                _ => false,
            }
        }
    }
}

impl ExecContext<'_> {
    /// Executes an operation that both kinds of programs have: on the function's resources (except
    /// state) and on the packet as a whole. Ignores other operations.
    pub(crate) fn common(
        &mut self,
        work: Option<&mut Work<'_>>,
        values: &mut Values<'_>,
        op: &Op,
    ) -> Result<(), Fault> {
        if pure(self.params, values, op)? {
            return Ok(());
        }
        match (op, work) {
            (Op::Load { out, field: Field::PktTime }, _) => {
                values.set(*out, Word::from(self.now));
            }
            (Op::StateLen { out, state }, _) => {
                let len = self.store.len(self.table(*state));
                values.set(*out, Word::from(len).min(values.ty(*out).max()));
            }
            (Op::Emit { event, args }, _) => self.emit(values, *event, args),
            (Op::Take { .. } | Op::TakeThis { .. } | Op::Release { .. }, _) => {
                self.pool(values, op);
            }
            (Op::Route { found, hop, param, addr }, _) => {
                let width = values.width(*addr);
                let next = self.instance.route(*param, width, values.get(*addr));
                values.set(*found, Word::from(next.is_some()));
                values.set(*hop, Word::from(next.unwrap_or(0)));
            }
            (Op::InStrings { out, param, len, words }, _) => {
                let words = words.iter().map(|word| values.get(*word));
                let is_in = match &self.params[param.index()] {
                    ParamValue::Strings(set) => set.contains_words(values.get(*len), words),
                    _ => false,
                };
                values.set(*out, is_in.into());
            }
            (Op::FindPatterns { of: Haystack::Text(len, words), .. }, _) => {
                let (bytes, len) = string(values, *len, words);
                find(self.params, values, op, (0, bytes.get(..len).unwrap_or_default()));
            }
            (Op::Extern { outs, name, param, args }, work) => {
                let list = |id: &_| (values.get(*id), values.width(*id));
                let args: Args = args.iter().map(list).collect();
                let results = self.call(work, name, *param, args.as_slice())?;
                for (out, result) in outs.iter().zip(results) {
                    values.set(*out, result & values.ty(*out).max());
                }
            }
            (op, Some(work)) => return self.on_packet(work, values, op),
            (_, None) => return Err(Fault::Truncated),
        }
        Ok(())
    }

    fn on_packet(
        &mut self,
        work: &mut Work<'_>,
        values: &mut Values<'_>,
        op: &Op,
    ) -> Result<(), Fault> {
        match op {
            Op::Has { out, header } => values.set(*out, Word::from(work.layout.has(*header))),
            Op::Load { out, field } => {
                let value = work.packet.get(work.layout, *field).ok_or(Fault::Truncated)?;
                values.set(*out, value);
            }
            Op::LoadTag { out, tag } => {
                let name = &*self.model.tags[tag.index()].name;
                let value = work.packet.tags.get(name).copied().unwrap_or(0);
                // Another function may have set a tag of the same name with a wider type.
                values.set(*out, value & self.model.tags[tag.index()].ty.max());
            }
            Op::StoreTag { tag, a } => self.store_tag(work, *tag, values.get(*a)),
            Op::PushVlan { id } => {
                let id = u16::try_from(values.get(*id)).unwrap_or(u16::MAX);
                return work.packet.push_vlan(id).then_some(()).ok_or(Fault::Truncated);
            }
            Op::PopVlan => return work.packet.pop_vlan().then_some(()).ok_or(Fault::Truncated),
            Op::HasRoom { .. } | Op::PushOption { .. } | Op::PopOption { .. } => {
                return option_op(work, values, op);
            }
            Op::Native { out } => {
                let answer = self.native(work)?;
                values.set(*out, answer);
            }
            Op::Patterns { found, number, param } => {
                let payload = work.payload().ok_or(Fault::Truncated)?;
                let first = match &self.params[param.index()] {
                    ParamValue::Patterns(set) => set.lowest_match(payload),
                    _ => None,
                };
                values.set(*found, Word::from(first.is_some()));
                values.set(*number, Word::from(first.unwrap_or(0)));
            }
            Op::FindPatterns { of, .. } => {
                let payload = work.payload().ok_or(Fault::Truncated)?;
                let searched = match of {
                    Haystack::Part(first, last) => {
                        part(payload, values.get(*first), values.get(*last))
                    }
                    _ => (0, payload),
                };
                find(self.params, values, op, searched);
            }
            Op::Mirror { port } => {
                let packet = work.packet.clone();
                work.emissions.push(Emission { dest: *port, packet, origin: Origin::Copied });
            }
            Op::Create { new, port } => create(work, values, new, *port)?,
            // The two interpreters execute all other operations themselves.
            op => return bytes_op(self.params, work, values, op).map(drop),
        }
        Ok(())
    }

    fn store_tag(&self, work: &mut Work<'_>, tag: TagId, value: Word) {
        let name = &*self.model.tags[tag.index()].name;
        match work.packet.tags.get_mut(name) {
            Some(old) => *old = value,
            None => drop(work.packet.tags.insert(name.into(), value)),
        }
    }

    fn call(
        &mut self,
        work: Option<&mut Work<'_>>,
        name: &str,
        param: Option<ParamId>,
        args: &[(Word, u16)],
    ) -> Result<[Word; MAX_RESULTS], Fault> {
        let Some(operator) = braid_externs::lookup(name) else { return Ok([0; MAX_RESULTS]) };
        let payload: &[u8] = match &work {
            Some(work) if operator.signature.reads_payload() => {
                work.payload().ok_or(Fault::Truncated)?
            }
            _ => &[],
        };
        let list = param.and_then(|param| match &self.params[param.index()] {
            ParamValue::Backends(all) => Some(all as &dyn braid_externs::Backends),
            _ => None,
        });
        let shard = &mut self.instance.shards[usize::from(self.shard)];
        let cache = shard.caches.entry(param).or_default();
        Ok(operator.call(&mut CallCtx {
            args,
            payload,
            backends: list,
            rng: &mut shard.rng,
            cache,
        }))
    }

    fn pool(&mut self, values: &mut Values<'_>, op: &Op) {
        let shard = usize::from(self.shard);
        match op {
            Op::Take { ok, out, pool } => {
                let member = self.instance.take(self.shard, *pool);
                values.set(*ok, Word::from(member.is_some()));
                values.set(*out, member.unwrap_or(0));
            }
            Op::TakeThis { ok, pool, a } => {
                let pool = self.instance.shards[shard].pools[pool.index()].as_mut();
                let done = pool.is_some_and(|pool| pool.take_this(values.get(*a)));
                values.set(*ok, Word::from(done));
            }
            Op::Release { pool, a } => self.instance.release(self.shard, *pool, values.get(*a)),
            _ => {}
        }
    }

    /// The event that a program publishes.
    pub(crate) fn event(&self, values: &Values<'_>, event: EventId, args: &[EventArg]) -> Event {
        let decl = &self.model.events[event.index()];
        let value = |arg: &EventArg| match arg {
            EventArg::Value(id) => Content::Word(values.get(*id)),
            EventArg::Str(text) => Content::Str(text.clone()),
            EventArg::Bytes(ids) => {
                let mut words = ids.iter().map(|id| values.get(*id));
                Content::Str(text_of(words.next().unwrap_or(0), words))
            }
            EventArg::Param(param) => Content::Str(match &self.params[param.index()] {
                ParamValue::Str(text) => text.clone(),
                _ => String::new(),
            }),
        };
        Event::new(decl, (self.now, self.node), args.iter().map(value))
    }

    fn emit(&mut self, values: &Values<'_>, event: EventId, args: &[EventArg]) {
        let made = self.event(values, event, args);
        if self.subscriptions.is_empty() {
            return self.out.event(made);
        }
        let word = |arg: &EventArg| match arg {
            EventArg::Value(id) => values.get(*id),
            _ => 0,
        };
        let fields = args.iter().map(word).collect();
        let (node, worker, event) = (self.node, self.worker, Some(event));
        self.scratch.published.push(Published { node, worker, event, fields, made });
    }
}

/// Reads or writes bytes of an area, or changes outer headers. Returns false, and does nothing, for
/// other operations.
pub(crate) fn bytes_op(
    params: &[ParamValue],
    work: &mut Work<'_>,
    values: &mut Values<'_>,
    op: &Op,
) -> Result<bool, Fault> {
    match op {
        Op::LoadBytes { found, out, area, offset } => {
            let bytes = usize::from(values.width(*out) / 8);
            let number = work.number((*area, values.get(*offset)), bytes)?;
            values.set(*found, Word::from(number.is_some()));
            values.set(*out, number.unwrap_or(0));
        }
        Op::LoadString { found, outs, area, offset, len } => {
            let (place, len) = ((*area, values.get(*offset)), values.get(*len));
            let mut words = [0; MAX_STRING_WORDS];
            let words = &mut words[..outs.len()];
            let there = work.string(place, len, words)?;
            values.set(*found, there.into());
            values.set_all(outs, words);
        }
        Op::StoreBytes { ok, area, offset, a } => {
            let bytes = usize::from(values.width(*a) / 8);
            let place = (*area, values.get(*offset));
            let done = work.set_number(place, bytes, values.get(*a))?;
            values.set(*ok, done.into());
        }
        Op::ReplaceBytes { ok, offset, old, new, words } => {
            let given = words_of(values, words);
            let given = given.get(..words.len()).unwrap_or_default();
            let place = (values.get(*offset), values.get(*old));
            let done = replace(work.packet, work.layout, place, (values.get(*new), given));
            values.set(*ok, done.map_err(|_| Fault::Truncated)?.into());
        }
        Op::SetOption { ok, kind, value } => {
            let value = value.as_ref().map(|(len, words)| string(values, *len, words));
            let value = value.as_ref().map(|(bytes, len)| bytes.get(..*len).unwrap_or_default());
            values.set(*ok, options::set(work.packet, work.layout, *kind, value).into());
        }
        Op::Encapsulate { ok, .. }
        | Op::Decapsulate { ok, .. }
        | Op::Translate { ok, .. }
        | Op::Encrypt { ok, .. }
        | Op::Decrypt { ok, .. } => {
            let done = outer_op(params, work, values, op)?;
            values.set(*ok, done.into());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Adds outer headers or removes some, or encrypts or decrypts the payload. The result is false,
/// and nothing changes, if that is not possible, or if a key is missing.
fn outer_op(
    params: &[ParamValue],
    work: &mut Work<'_>,
    values: &Values<'_>,
    op: &Op,
) -> Result<bool, Fault> {
    let key = |of: KeyRef| params.get(of.keys.index())?.key(values.get(of.number));
    let known = |of: Association| association(params, values, of);
    let (packet, layout) = (&mut *work.packet, &*work.layout);
    let done = match op {
        Op::Encapsulate { inner, parts, len, words, seal, .. } => {
            let given = words_of(values, words);
            let given = (*len as usize, given.get(..words.len()).unwrap_or_default());
            let seal = match seal {
                None => None,
                Some((of, number)) => {
                    let Some(association) = known(*of) else { return Ok(false) };
                    Some((association, wide(values, *number)))
                }
            };
            let seal = seal.as_ref().map(|(association, number)| (association, *number));
            tunnel::encapsulate(packet, layout, (*inner, parts), given, seal)
        }
        Op::Decapsulate { inner, last, offset, association: of, .. } => {
            let association = of.and_then(known);
            if association.is_none() && of.is_some() {
                return Ok(false);
            }
            let (outer, offset) = ((*inner, *last), values.get(*offset));
            tunnel::decapsulate(packet, layout, outer, offset, association.as_ref())
        }
        Op::Translate { to, own, quoted, .. } => {
            translate::translate(packet, layout, *to, addresses(values, own, quoted.as_ref()))
        }
        Op::Encrypt { key: of, number, offset, .. } => {
            let Some(key) = key(*of) else { return Ok(false) };
            crypt::encrypt(packet, layout, values.get(*offset), (key, wide(values, *number)))
        }
        Op::Decrypt { key: of, offset, .. } => {
            let Some(key) = key(*of) else { return Ok(false) };
            crypt::decrypt(packet, layout, values.get(*offset), key)
        }
        _ => return Ok(false),
    };
    done.map_err(|_| Fault::Truncated)
}

/// What both ends of a tunnel know of a packet. `None` if its key is missing.
pub(crate) fn association(
    params: &[ParamValue],
    values: &Values<'_>,
    of: Association,
) -> Option<tunnel::Association> {
    let key = params.get(of.key.keys.index())?.key(values.get(of.key.number))?.clone();
    let number = |high| u32::try_from(values.get(high)).unwrap_or(u32::MAX);
    Some(tunnel::Association { key, high: of.high.map(number) })
}

/// The addresses that a translated packet gets.
pub(crate) fn addresses(
    values: &Values<'_>,
    own: &[ValueId; 2],
    quoted: Option<&[ValueId; 2]>,
) -> Addresses {
    let words = |ids: &[ValueId; 2]| ids.map(|id| values.get(id));
    Addresses { own: words(own), quoted: quoted.map(words) }
}

/// A value of 64 bits.
pub(crate) fn wide(values: &Values<'_>, value: ValueId) -> u64 {
    u64::try_from(values.get(value)).unwrap_or(u64::MAX)
}

/// The words of a string. Those behind its last one are 0.
fn words_of(values: &Values<'_>, words: &[ValueId]) -> [Word; MAX_STRING_WORDS] {
    let mut given = [0; MAX_STRING_WORDS];
    given.iter_mut().zip(words).for_each(|(place, word)| *place = values.get(*word));
    given
}

/// The bytes of a string, and their number.
pub(crate) fn string(
    values: &Values<'_>,
    len: ValueId,
    words: &[ValueId],
) -> ([u8; MAX_STRING], usize) {
    bytes_of(values.get(len), words.iter().map(|word| values.get(*word)))
}

/// Executes an operation on TCP options.
fn option_op(work: &mut Work<'_>, values: &mut Values<'_>, op: &Op) -> Result<(), Fault> {
    let done = match op {
        Op::HasRoom { out, option } => {
            let room = options::has_room(work.packet, work.layout, *option);
            values.set(*out, room.into());
            true
        }
        Op::PushOption { option, values: parts } => {
            let mut given = [0; options::MOST_VALUES];
            let places = given.iter_mut().zip(parts);
            places.for_each(|(place, part)| *place = values.get(*part));
            options::push(work.packet, work.layout, *option, &given)
        }
        Op::PopOption { option } => options::pop(work.packet, work.layout, *option),
        _ => true,
    };
    if done { Ok(()) } else { Err(Fault::Truncated) }
}

fn create(
    work: &mut Work<'_>,
    values: &Values<'_>,
    new: &NewPacket,
    dest: Dest,
) -> Result<(), Fault> {
    let fields: Vec<_> = new.fields.iter().map(|(field, id)| (*field, values.get(*id))).collect();
    let back = new.goes_back(dest);
    let option = |(option, parts): &(Header, Vec<ValueId>)| {
        (*option, parts.iter().map(|part| values.get(*part)).collect())
    };
    let options: Vec<_> = new.options.iter().map(option).collect();
    let packet = build_with_options(work.packet, new.shape, back, &fields, &options, new.payload);
    let packet = packet.ok_or(Fault::Truncated)?;
    work.emissions.push(Emission { dest, packet, origin: Origin::Built });
    Ok(())
}

/// The arguments of a call: on the stack, or on the heap if there are many.
#[derive(Default)]
struct Args {
    few: [(Word, u16); 8],
    many: Vec<(Word, u16)>,
    len: usize,
}

impl FromIterator<(Word, u16)> for Args {
    fn from_iter<I: IntoIterator<Item = (Word, u16)>>(all: I) -> Self {
        let mut args = Self::default();
        for arg in all {
            match args.few.get_mut(args.len) {
                Some(place) if args.many.is_empty() => *place = arg,
                _ => {
                    if args.many.is_empty() {
                        args.many.extend(args.few);
                    }
                    args.many.push(arg);
                }
            }
            args.len += 1;
        }
        args
    }
}

impl Args {
    #[expect(
        clippy::indexing_slicing,
        reason = "`len` is the number of elements of the array in use"
    )]
    fn as_slice(&self) -> &[(Word, u16)] {
        if self.many.is_empty() { &self.few[..self.len] } else { &self.many }
    }
}
