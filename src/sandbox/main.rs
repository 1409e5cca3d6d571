//! `agentrun-sandbox`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    match agentrun_sandbox::parse(std::env::args_os().skip(1)) {
        Ok(command) => agentrun_sandbox::run(command),
        Err(error) => {
            agentrun_sandbox::complain(&format!("{error}\n{}", agentrun_sandbox::USAGE));
            ExitCode::from(agentrun_protocol::exit::MISCONFIGURED)
        }
    }
}
