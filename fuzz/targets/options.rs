#![no_main]
//! Reads what users write behind `--if INTERFACE=` and `--faults`.

use braid_io::{Device, Faults};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(device) = text.parse::<Device>() {
        // A device's name reads back, but a speed is not part of a name.
        let again: Device = device.to_string().parse().expect("a device's name");
        if !matches!(device, Device::Replay(..)) {
            assert_eq!(device, again);
        }
    }
    if let Ok(faults) = text.parse::<Faults>() {
        let Faults { loss, duplicate, reorder, corrupt, truncate, delay, stall, .. } = faults;
        let chances = [loss, duplicate, reorder, corrupt, truncate, delay, stall];
        assert!(chances.iter().all(|chance| *chance <= 1_000_000), "{faults:?}");
    }
});
