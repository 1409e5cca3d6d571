//! What a piece of work is as a command line.

use super::warm::Key;
use crate::settings::{Folders, SeenFolders};
use crate::store::files::beneath;
use agentrun_protocol::executor::Exec;
use agentrun_protocol::work::{Assignment, FileAccess, Limits, NOTES_VARIABLE, WARM_VARIABLE, Warm, Work};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

const PYTHON_SHIM: &str = include_str!("../shims/run.py");
const NODE_SHIM: &str = include_str!("../shims/run.js");
/// Whole logs are kept up to here, for each stream (16 MiB).
pub(super) const LOG_BYTES: u64 = 16 << 20;
/// The longest first line of a script that is looked at.
const FIRST_LINE: u64 = 256;
/// The longest file that is searched for a `run`; longer ones are left to the shim.
const SEARCHED: u64 = 256 * 1024;
/// What a file that needs the shim defines or exports.
const RUN: &[u8] = b"run";

/// What the executor is to run for `assignment`; the caller's link numbers it.
pub(super) fn exec(assignment: &Assignment, folders: &Folders, seen: &SeenFolders) -> Exec {
    let mut limits = assignment.limits.clone();
    let mut env = assignment.env.clone();
    if !assignment.notes.is_empty() {
        env.insert(
            NOTES_VARIABLE.to_owned(),
            Value::from(assignment.notes.clone()).to_string(),
        );
    }
    let (argv, cwd, access) = match &assignment.work {
        Work::Function {
            skill, file, files, ..
        } => {
            let folder = format!("{}/{skill}", seen.skills);
            let program = format!("{folder}/{file}");
            let local = beneath(&folders.skills, skill)
                .and_then(|folder| beneath(&folder, file))
                .ok();
            (
                function(&program, local.as_deref(), &mut limits, &mut env),
                folder,
                *files,
            )
        }
        Work::Command { argv, working_dir } => {
            let workspace = || format!("{}/workspace", seen.user_data);
            let cwd = working_dir.clone().unwrap_or_else(workspace);
            (argv.clone(), cwd, FileAccess::Write)
        }
        // An agent is no program: its tools are.
        Work::Agent(_) => (
            Vec::new(),
            format!("{}/workspace", seen.user_data),
            FileAccess::Write,
        ),
    };
    Exec {
        id: 0,
        argv,
        cwd,
        env,
        inherit_env: assignment.inherit_env.clone(),
        access,
        tcp: assignment.tcp,
        limits,
        output_bytes: LOG_BYTES,
        io_files: matches!(assignment.work, Work::Command { .. }),
    }
}

/// Where a call of a function with warm processes goes; `exec` is how one of them is started.
pub(super) fn warm(assignment: &Assignment, exec: &Exec) -> Option<(Key, Warm)> {
    let Work::Function {
        skill,
        warm: Some(warm),
        ..
    } = &assignment.work
    else {
        return None;
    };
    let mut exec = exec.clone();
    exec.env.insert(WARM_VARIABLE.to_owned(), "1".to_owned());
    // Of many calls; each has bounds of its own.
    exec.output_bytes = u64::MAX;
    let files = assignment.skills.iter().find(|files| files.name == *skill);
    let key = Key {
        skill: skill.clone(),
        digest: files.map(|files| files.digest.clone()).unwrap_or_default(),
        exec,
    };
    Some((key, *warm))
}

fn function(
    program: &str,
    local: Option<&Path>,
    limits: &mut Limits,
    env: &mut BTreeMap<String, String>,
) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match Path::new(program)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("py") => {
            // Whatever the image's locale is: the contract is UTF-8.
            env.entry("PYTHONUTF8".to_owned())
                .or_insert_with(|| "1".to_owned());
            match local.is_some_and(is_plain) {
                true => words(&["python3", "-u", program]),
                false => words(&["python3", "-u", "-c", PYTHON_SHIM, program]),
            }
        }
        Some("js" | "mjs" | "cjs") => {
            let mut argv = vec!["node".to_owned()];
            // V8 reserves far more address space than it uses: its own heap cap stands for the limit.
            if let Some(bytes) = limits.memory_bytes.take() {
                argv.push(format!("--max-old-space-size={}", (bytes >> 20).max(1)));
            }
            let shim: &[&str] = if local.is_some_and(is_plain) {
                &[]
            } else {
                &["-e", NODE_SHIM]
            };
            argv.extend(shim.iter().chain(&[program]).map(|word| (*word).to_owned()));
            argv
        }
        // A ConfigMap's files have no executable bit, so the interpreter is named here.
        Some("sh") => {
            let mut argv = local
                .and_then(interpreter)
                .unwrap_or_else(|| vec!["sh".to_owned()]);
            argv.push(program.to_owned());
            argv
        }
        _ => vec![program.to_owned()],
    }
}

/// Whether a file has no word `run`, and so can neither define nor export one: a program that starts by itself, which the
/// shim would only make slower. False where that is not known.
fn is_plain(file: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(SEARCHED + 1).read_to_end(&mut text));
    let whole = read.is_ok_and(|read| read as u64 <= SEARCHED);
    whole && !has_word(&text, RUN)
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    let part_of_a_name = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | 0x80..))
    };
    memchr::memmem::find_iter(text, word).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        !part_of_a_name(before) && !part_of_a_name(text.get(at + word.len()))
    })
}

/// Interpreter and argument of a script's first line.
fn interpreter(script: &Path) -> Option<Vec<String>> {
    let mut head = Vec::new();
    File::open(script)
        .ok()?
        .take(FIRST_LINE)
        .read_to_end(&mut head)
        .ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim();
    let (program, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words = [program, argument.trim()]
        .into_iter()
        .filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
