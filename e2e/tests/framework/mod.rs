//! Namespaces, fixtures, waiting and reports: what every test uses.

mod control_plane;
mod dump;
mod manifest;
mod model;
mod run;
mod scenario;
mod trial;
mod wait;
mod world;

pub use control_plane::{COMPONENTS, ControlPlane};
pub use manifest::{command, python, quoted, restricted_container, restricted_pod, sh};
pub use run::Finished;
pub use scenario::{call, calls, otherwise, probed, says};
pub use trial::{Mode, trial};
pub use wait::{MINUTE, named, until};
pub use world::{World, is_over};

/// Makes a trial of each test function; what is not listed is dead code, and the compiler says so.
macro_rules! trials {
    ($mode:expr; $($module:ident :: $test:ident),* $(,)?) => {
        vec![$($crate::framework::trial($mode, stringify!($module), stringify!($test), |world| {
            Box::pin($module::$test(world))
        })),*]
    };
}
pub(crate) use trials;
