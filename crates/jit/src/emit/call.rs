//! Host calls.

use super::{Emitter, Place, at};
use crate::abi::Resource;
use crate::error::Error;
use crate::sys;
use braid_ir::engine::Fault;
use braid_ir::model::{ParamId, QueueId, ValueId, Word};
use braid_ir::residual::What;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value, types};

/// Bytes of an argument or result of a universal call.
const SLOT: usize = 16;

impl Emitter<'_, '_> {
    /// Calls one of the host's functions, or one that does not know the host.
    pub(super) fn call(&mut self, function: usize, args: &[Value], results: usize) -> Vec<Value> {
        self.calls = true;
        self.loaded.clear();
        let calls = self.framed(at::CALLS);
        let callee = self.load(self.regions.frame, types::I64, calls, function);
        let mut signature = Signature::new(self.build.func.signature.call_conv);
        for arg in args {
            let ty = self.build.func.dfg.value_type(*arg);
            signature.params.push(AbiParam::new(ty));
        }
        signature.returns.extend((0..results).map(|_| AbiParam::new(types::I64)));
        let signature = self.build.import_signature(signature);
        let call = self.build.ins().call_indirect(signature, callee, args);
        self.build.inst_results(call).to_vec()
    }

    /// Calls one of the host's functions for a resource.
    pub(super) fn host_call(
        &mut self,
        function: usize,
        number: u32,
        args: &[Value],
        results: usize,
    ) -> Vec<Value> {
        // The host may move what was at hand.
        self.fresh = None;
        let number = self.build.ins().iconst(types::I32, i64::from(number));
        let mut all = vec![self.frame, number];
        all.extend(args);
        self.call(function, &all, results)
    }

    /// Does a step by `Host::step`.
    pub(super) fn step_call(&mut self, place: Place, what: &What) -> Result<(), Error> {
        let defined = what.outs();
        let code = self.universal(place, &what.uses(), defined.len())?;
        self.fault_if(place, code);
        self.results(&what.uses(), &defined);
        Ok(())
    }

    fn universal(
        &mut self,
        place: Place,
        used: &[ValueId],
        defined: usize,
    ) -> Result<Value, Error> {
        self.fresh = None;
        let args = self.scratch((used.len() + defined) * SLOT);
        for (index, value) in used.iter().enumerate() {
            let (low, high) = self.halves(*value)?;
            self.put(low, args, index * SLOT);
            self.put(high, args, index * SLOT + 8);
        }
        let block = self.build.ins().iconst(types::I32, i64::from(place.block));
        let step = self.build.ins().iconst(types::I32, i64::from(place.step));
        let counts = (self.imm(used.len() as u64), self.imm(defined as u64));
        let all = [self.frame, block, step, args, counts.0, counts.1];
        let function = if self.entered { at::STEP } else { at::RESHAPE };
        Ok(self.call(function, &all, 1)[0])
    }

    fn results(&mut self, used: &[ValueId], defined: &[ValueId]) {
        let args = self.scratch(0);
        for (index, value) in defined.iter().enumerate() {
            let offset = (used.len() + index) * SLOT;
            let low = self.take(args, offset);
            let value_is = if self.is_wide(*value) {
                let high = self.take(args, offset + 8);
                self.build.ins().iconcat(low, high)
            } else {
                low
            };
            self.set(*value, value_is);
        }
    }

    /// Takes a result of 32 bits and the bit above them apart.
    pub(super) fn flag_and_number(&mut self, result: Value, flag: ValueId, number: ValueId) {
        let is_set = self.down(result, 32);
        self.set(flag, is_set);
        let low = self.masked(result, 32);
        self.set(number, low);
    }

    pub(super) fn route(
        &mut self,
        number: u32,
        (found, hop): (ValueId, ValueId),
        addr: ValueId,
    ) -> Result<(), Error> {
        let (low, high) = self.halves(addr)?;
        let wide = self.imm(u64::from(self.width(addr) > 32));
        let result = self.host_call(at::ROUTE, number, &[low, high, wide], 1)[0];
        self.flag_and_number(result, found, hop);
        Ok(())
    }

    pub(super) fn list_get(
        &mut self,
        place: Place,
        number: u32,
        out: ValueId,
        (index, column): (ValueId, u32),
    ) -> Result<(), Error> {
        let index = self.low(index)?;
        let column = self.build.ins().iconst(types::I32, i64::from(column));
        let results = self.host_call(at::MEMBER, number, &[index, column], 2);
        let (code, zero) = (self.imm(sys::code(Fault::Index)), self.imm(0));
        let code = self.build.ins().select(results[1], zero, code);
        self.fault_if(place, code);
        self.set(out, results[0]);
        Ok(())
    }

    /// As `list_get` for a list that stays as it is: without the host.
    pub(super) fn list_at(
        &mut self,
        place: Place,
        node: u16,
        out: ValueId,
        (param, index, column): (ParamId, ValueId, u32),
    ) -> Result<(), Error> {
        let wide = self.width(out) > 64;
        let rows = self.resources.list(node, param).unwrap_or(&[]);
        let count = rows.len() as u64;
        let known = self.lists.0.entry((node, param.0, column)).or_insert_with(|| {
            let values = rows.iter().map(|row| row.get(column as usize).copied().unwrap_or(0));
            let halves = |value: Word| [value as u64, (value >> 64) as u64];
            values.flat_map(|value| halves(value).into_iter().take(1 + usize::from(wide))).collect()
        });
        let start = known.as_ptr() as u64;
        let index = self.low(index)?;
        let count = self.imm(count);
        let past = self.build.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
        self.fault_when(place, past, Fault::Index);
        let start = self.imm(start);
        let offset = self.up(index, if wide { 4 } else { 3 });
        let from = self.build.ins().iadd(start, offset);
        self.slots(&[out], from);
        Ok(())
    }

    /// Whether a queue has room, at the end of a block.
    pub(super) fn has_room(
        &mut self,
        block: u32,
        (node, queue): (u16, QueueId),
        delay: ValueId,
    ) -> Result<Value, Error> {
        if let Some(number) = self.resources.number(node, Resource::Queue(queue)) {
            return Ok(self.host_call(at::HAS_ROOM, number, &[], 1)[0]);
        }
        let steps = self.residual.blocks[block as usize].steps.len();
        let place = Place { block, step: steps as u32, fault: None };
        let code = self.universal(place, &[delay], 1)?;
        self.fault_if(place, code);
        let args = self.scratch(0);
        Ok(self.take(args, SLOT))
    }
}
