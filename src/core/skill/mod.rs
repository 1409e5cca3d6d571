//! Reads a skill's folder: SKILL.md, functions.yaml, and the digest of the whole.

mod frontmatter;
mod functions;

pub use frontmatter::{Frontmatter, MAX_DESCRIPTION, MAX_NAME};

use crate::digest::sha256_hex;
use agentrun_api::SkillFunction;
use std::collections::BTreeMap;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The file that declares functions.
pub const FUNCTIONS_FILE: &str = "functions.yaml";

/// The largest SKILL.md or functions.yaml that is read, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// Endings under which a function's program is looked for, in this order (DETAILS: `functions/NAME.{py,js,mjs,sh}`,
/// or an executable).
const PROGRAMS: [&str; 5] = [".py", ".js", ".mjs", ".sh", ""];

/// A skill that keeps the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSkill {
    /// What SKILL.md says of itself.
    pub frontmatter: Frontmatter,
    /// Its functions, each with its `file` filled in.
    pub functions: Vec<SkillFunction>,
    /// `sha256:` and the digest over its sorted paths, modes and contents.
    pub digest: String,
}

/// Why a folder is no valid skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// There is no SKILL.md.
    #[error("has no {SKILL_FILE}; found: {found}")]
    NoSkillFile {
        /// The files that there are.
        found: String,
    },
    /// A path leaves the folder or cannot be one.
    #[error("file {path:?}: paths are relative, without empty parts, . and ..")]
    BadPath {
        /// The path.
        path: String,
    },
    /// A text is too large or not UTF-8.
    #[error("{file}: {message}")]
    Text {
        /// The file.
        file: &'static str,
        /// What was found and what is allowed.
        message: String,
    },
    /// A rule of the frontmatter is broken.
    #[error("{SKILL_FILE}: {0}")]
    Frontmatter(String),
    /// A rule of functions.yaml is broken.
    #[error("{FUNCTIONS_FILE}: {0}")]
    Functions(String),
}

/// Parses a folder's files, by path.
pub fn parse(files: &BTreeMap<String, Vec<u8>>) -> Result<ParsedSkill, SkillError> {
    if let Some(path) = files.keys().find(|path| !is_relative(path)) {
        return Err(SkillError::BadPath { path: path.clone() });
    }
    let Some(skill) = files.get(SKILL_FILE) else {
        let found = files.keys().take(10).cloned().collect::<Vec<_>>().join(", ");
        return Err(SkillError::NoSkillFile { found });
    };
    let frontmatter = frontmatter::parse(text(SKILL_FILE, skill)?).map_err(SkillError::Frontmatter)?;
    let functions = match files.get(FUNCTIONS_FILE) {
        None => Vec::new(),
        Some(declared) => {
            let find = |name: &str| program(files, name);
            functions::parse(text(FUNCTIONS_FILE, declared)?, &find, &|path| files.contains_key(path))
                .map_err(SkillError::Functions)?
        }
    };
    Ok(ParsedSkill { frontmatter, functions, digest: digest(files) })
}

fn text<'a>(file: &'static str, bytes: &'a [u8]) -> Result<&'a str, SkillError> {
    if bytes.len() > MAX_TEXT {
        let message = format!("has {} bytes, at most {MAX_TEXT} are allowed", bytes.len());
        return Err(SkillError::Text { file, message });
    }
    std::str::from_utf8(bytes).map_err(|error| SkillError::Text { file, message: format!("is not UTF-8: {error}") })
}

fn is_relative(path: &str) -> bool {
    !path.contains('\0') && path.len() <= 1024 && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn program(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Option<String> {
    let paths = PROGRAMS.iter().map(|ending| format!("functions/{name}{ending}"));
    paths.into_iter().find(|path| files.contains_key(path))
}

/// Neither ConfigMaps nor Skill objects carry modes: what begins like a program is one.
pub fn is_executable(content: &[u8]) -> bool {
    content.starts_with(b"#!") || content.starts_with(b"\x7fELF")
}

/// Digest of a skill: SHA-256 over its sorted (path, mode, content), each part preceded by its length.
pub fn digest(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut all = Vec::new();
    let mut part = |bytes: &[u8]| {
        all.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        all.extend_from_slice(bytes);
    };
    for (path, content) in files {
        part(path.as_bytes());
        part(if is_executable(content) { b"755" } else { b"644" });
        part(content);
    }
    format!("sha256:{}", sha256_hex(&all))
}

#[cfg(test)]
mod tests;
