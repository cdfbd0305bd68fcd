//! Calls of the host's functions.

use super::emitter::{Emitter, Place, at};
use crate::error::Error;
use braid_ir::model::ValueId;
use braid_ir::residual::What;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value, types};

/// The bytes of an argument or result of a universal host call.
pub(super) const SLOT: usize = 16;

impl Emitter<'_, '_> {
    /// Calls one of the functions in the frame's table of calls.
    #[expect(clippy::indexing_slicing, reason = "a call has the results that its signature says")]
    pub(super) fn call<const R: usize>(&mut self, function: usize, args: &[Value]) -> [Value; R] {
        self.calls = true;
        self.loaded.clear();
        let calls = self.frame_word(at::CALLS);
        let callee = self.load(self.memories.frame, types::I64, calls, function);
        let mut signature = Signature::new(self.build.func.signature.call_conv);
        for arg in args {
            let ty = self.build.func.dfg.value_type(*arg);
            signature.params.push(AbiParam::new(ty));
        }
        signature.returns.extend((0..R).map(|_| AbiParam::new(types::I64)));
        let signature = self.build.import_signature(signature);
        let call = self.build.ins().call_indirect(signature, callee, args);
        let results = self.build.inst_results(call);
        std::array::from_fn(|at| results[at])
    }

    /// Calls one of the host's functions for a resource.
    pub(super) fn host_call<const R: usize>(
        &mut self,
        function: usize,
        number: u32,
        args: &[Value],
    ) -> [Value; R] {
        // The host may move entries, so the addresses of loaded slots become invalid.
        self.fresh = None;
        let number = self.build.ins().iconst(types::I32, i64::from(number));
        let mut all = vec![self.frame, number];
        all.extend(args);
        self.call(function, &all)
    }

    /// Performs a step by a universal host call (`Host::step`).
    pub(super) fn step_call(&mut self, place: Place, what: &What) -> Result<(), Error> {
        let defined = what.outs();
        let code = self.universal(place, &what.uses(), defined.len())?;
        self.fault_if(place, code);
        self.results(&what.uses(), &defined);
        Ok(())
    }

    pub(super) fn universal(
        &mut self,
        place: Place,
        used: &[ValueId],
        defined: usize,
    ) -> Result<Value, Error> {
        self.fresh = None;
        let args = self.scratch((used.len() + defined) * SLOT);
        for (index, value) in used.iter().enumerate() {
            let (low, high) = self.halves(*value)?;
            self.store_word(low, args, index * SLOT);
            self.store_word(high, args, index * SLOT + 8);
        }
        let block = self.build.ins().iconst(types::I32, i64::from(place.block));
        let step = self.build.ins().iconst(types::I32, i64::from(place.step));
        let counts = (self.imm(used.len() as u64), self.imm(defined as u64));
        let all = [self.frame, block, step, args, counts.0, counts.1];
        let function = if self.entered { at::STEP } else { at::RESHAPE };
        let [code] = self.call(function, &all);
        Ok(code)
    }

    fn results(&mut self, used: &[ValueId], defined: &[ValueId]) {
        let args = self.scratch(0);
        for (index, value) in defined.iter().enumerate() {
            let offset = (used.len() + index) * SLOT;
            let low = self.load_word(args, offset);
            let value_is = if self.is_wide(*value) {
                let high = self.load_word(args, offset + 8);
                self.build.ins().iconcat(low, high)
            } else {
                low
            };
            self.set(*value, value_is);
        }
    }

    /// Defines two values from a result: a number in the low 32 bits, and a flag in the bit above
    /// them.
    pub(super) fn flag_and_number(&mut self, result: Value, flag: ValueId, number: ValueId) {
        let is_set = self.shift_right(result, 32);
        self.set(flag, is_set);
        let low = self.masked(result, 32);
        self.set(number, low);
    }
}
