//! Reads a skill's folder: SKILL.md, functions.yaml, and the digest of the whole.

mod frontmatter;
mod functions;
pub mod inspect;

pub use frontmatter::{Frontmatter, MAX_DESCRIPTION, MAX_NAME};
pub use functions::Schemas;

use agentrun_api::SkillFunction;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The file that declares functions.
pub const FUNCTIONS_FILE: &str = "functions.yaml";

/// The largest SKILL.md or functions.yaml that is read, in bytes.
pub const MAX_TEXT: usize = 256 * 1024;

/// Endings under which a function's program is looked for, in this order (`functions/NAME.{py,js,mjs,sh}`,
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

/// What parsing needs of a folder; contents other than these two texts are only hashed.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    /// Paths of all its files.
    pub paths: &'a BTreeSet<String>,
    /// Content of [`SKILL_FILE`].
    pub skill: Option<&'a [u8]>,
    /// Content of [`FUNCTIONS_FILE`].
    pub functions: Option<&'a [u8]>,
    /// What [`Digester`] gives for it.
    pub digest: &'a str,
}

/// Parses a folder's files, by path.
pub fn parse(files: &BTreeMap<String, Vec<u8>>) -> Result<ParsedSkill, SkillError> {
    parse_folder(&Folder {
        paths: &files.keys().cloned().collect(),
        skill: files.get(SKILL_FILE).map(Vec::as_slice),
        functions: files.get(FUNCTIONS_FILE).map(Vec::as_slice),
        digest: &digest(files),
    })
}

/// Parses a folder whose files are too large to be held at once.
pub fn parse_folder(folder: &Folder<'_>) -> Result<ParsedSkill, SkillError> {
    if let Some(path) = folder.paths.iter().find(|path| !is_relative(path)) {
        return Err(SkillError::BadPath { path: path.clone() });
    }
    let Some(skill) = folder.skill else {
        let found = folder
            .paths
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        return Err(SkillError::NoSkillFile { found });
    };
    let frontmatter = frontmatter::parse(text(SKILL_FILE, skill)?).map_err(SkillError::Frontmatter)?;
    let functions = match folder.functions {
        None => Vec::new(),
        Some(declared) => {
            let find = |name: &str| program(folder.paths, name);
            functions::parse(text(FUNCTIONS_FILE, declared)?, &find, &|path| {
                folder.paths.contains(path)
            })
            .map_err(SkillError::Functions)?
        }
    };
    let digest = folder.digest.to_owned();
    Ok(ParsedSkill {
        frontmatter,
        functions,
        digest,
    })
}

/// The schemas of one function, from the content of [`FUNCTIONS_FILE`].
pub fn schemas(functions: &[u8], name: &str) -> Result<Schemas, SkillError> {
    functions::schemas(text(FUNCTIONS_FILE, functions)?, name).map_err(SkillError::Functions)
}

fn text<'a>(file: &'static str, bytes: &'a [u8]) -> Result<&'a str, SkillError> {
    if bytes.len() > MAX_TEXT {
        let message = format!("has {} bytes, at most {MAX_TEXT} are allowed", bytes.len());
        return Err(SkillError::Text { file, message });
    }
    std::str::from_utf8(bytes).map_err(|error| SkillError::Text {
        file,
        message: format!("is not UTF-8: {error}"),
    })
}

fn is_relative(path: &str) -> bool {
    !path.contains('\0') && path.len() <= 1024 && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn program(paths: &BTreeSet<String>, name: &str) -> Option<String> {
    let mut wanted = PROGRAMS.iter().map(|ending| format!("functions/{name}{ending}"));
    wanted.find(|path| paths.contains(path))
}

/// Neither ConfigMaps nor Skill objects carry modes: what begins like a program is one.
pub fn is_executable(content: &[u8]) -> bool {
    content.starts_with(b"#!") || content.starts_with(b"\x7fELF")
}

/// Digest of a skill: SHA-256 over its sorted (path, mode, content), each part preceded by its length.
pub fn digest(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut digester = Digester::default();
    for (path, content) in files {
        digester.file(path, is_executable(content), content.len() as u64);
        digester.content(content);
    }
    digester.finish()
}

/// Makes the digest of a skill piece by piece. Files come in the order of their paths.
#[derive(Clone, Debug, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Begins a file; exactly `bytes` bytes of content follow.
    pub fn file(&mut self, path: &str, executable: bool, bytes: u64) {
        self.part(path.as_bytes());
        self.part(if executable { b"755" } else { b"644" });
        self.0.update(bytes.to_be_bytes());
    }

    /// The next piece of the file's content.
    pub fn content(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// `sha256:` and the digest.
    pub fn finish(self) -> String {
        format!("sha256:{}", crate::digest::hex(&self.0.finalize()))
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests;
