//! Copies the binary for Pods that cannot mount the runtime image.

use crate::complain;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

const NAME: &str = "agentrun-sandbox";

/// Copies the own binary to `FOLDER/agentrun-sandbox`, executable for everyone.
pub(crate) fn install(folder: &Path) -> ExitCode {
    match copy(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot install into {}: {error}", folder.display()));
            ExitCode::FAILURE
        }
    }
}

/// By a temporary name, so that nobody ever executes half a file.
fn copy(folder: &Path) -> io::Result<()> {
    let unfinished = folder.join(".agentrun-sandbox.new");
    fs::copy("/proc/self/exe", &unfinished)?;
    fs::set_permissions(&unfinished, Permissions::from_mode(0o755))?;
    fs::rename(&unfinished, folder.join(NAME))
}
