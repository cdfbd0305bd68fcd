#![no_main]
//! Reads what users write behind `--if INTERFACE=` and `--faults`.

use braid_io::{Device, Faults};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // The name of a replay leaves out its speed, so it need not read back.
    if let Ok(device) = text.parse::<Device>()
        && !matches!(device, Device::Replay(..))
    {
        assert_eq!(device.to_string().parse(), Ok(device));
    }
    if let Ok(faults) = text.parse::<Faults>() {
        let Faults { loss, duplicate, reorder, corrupt, truncate, delay, stall, .. } = faults;
        let chances = [loss, duplicate, reorder, corrupt, truncate, delay, stall];
        assert!(chances.iter().all(|chance| *chance <= 1_000_000), "{faults:?}");
    }
});
