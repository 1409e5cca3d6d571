//! Capabilities: in a Pod there are none. Where root runs this, its programs keep only what concerns the
//! owners of files (Landlock decides where), so that root can still work in somebody's folder.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities,
};

const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Gives up all capabilities but the kept ones, for this process and all that it will start.
pub(crate) fn drop_all_but_files() -> Result<(), Errno> {
    let has = capabilities(None)?;
    if has.permitted.contains(CapabilitySet::SETPCAP) {
        shrink_bounding_set()?;
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.effective & KEPT,
            permitted: has.permitted & KEPT,
            inheritable: has.inheritable & KEPT,
        },
    )
}

/// What root would get back by the next `exec`.
fn shrink_bounding_set() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !KEPT.contains(capability) => remove_capability_from_bounding_set(capability)?,
            Ok(_) => {}
            // The kernel knows no more.
            Err(_) => break,
        }
    }
    Ok(())
}
