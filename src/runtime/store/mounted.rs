//! Skills that are mounts: nothing is written, their files are read and hashed.

use agentrun_core::skill::{Digester, FUNCTIONS_FILE, Folder, MAX_TEXT, SKILL_FILE, is_executable};
use agentrun_core::skill::{ParsedSkill, SkillError, parse_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// The most files of a skill.
const MAX_FILES: usize = 5_000;
/// The most bytes of a skill: all of them are read once in every sandbox that uses it.
const MAX_BYTES: u64 = 512 << 20;
/// How deep its folders may be.
const MAX_DEPTH: usize = 32;
/// What a file system itself keeps in its root.
const OF_THE_FILE_SYSTEM: &str = "lost+found";

/// A mounted folder is no skill, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MountedError {
    /// It breaks a rule.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Something that is neither file nor folder.
    #[error("{0:?} is neither a file nor a folder: links and devices are not allowed in a skill")]
    Kind(String),
    /// A name that is no UTF-8.
    #[error("{0:?}: names must be UTF-8")]
    Name(PathBuf),
    /// It is too large.
    #[error("has more than {0}")]
    TooLarge(&'static str),
    /// It cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Reads a folder by the rules of skills.
pub fn parse(folder: &Path) -> Result<ParsedSkill, MountedError> {
    let files = list(folder)?;
    let text = |name: &str| files.get(name).map(|_| head(&folder.join(name))).transpose();
    let (skill, functions) = (text(SKILL_FILE)?, text(FUNCTIONS_FILE)?);
    let parsed = parse_folder(&Folder {
        paths: &files.keys().cloned().collect::<BTreeSet<_>>(),
        skill: skill.as_deref(),
        functions: functions.as_deref(),
        digest: &digest_of(folder, &files)?,
    })?;
    Ok(parsed)
}

/// Digest of a folder, as [`agentrun_core::skill::digest`] makes it of the same files.
pub fn digest(folder: &Path) -> Result<String, MountedError> {
    digest_of(folder, &list(folder)?)
}

/// Sizes of all files by their paths, sorted.
fn list(folder: &Path) -> Result<BTreeMap<String, u64>, MountedError> {
    let mut files = BTreeMap::new();
    let mut bytes = 0_u64;
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((path, prefix, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(MountedError::TooLarge("32 folders within each other"));
        }
        let failed = |source| MountedError::Read {
            path: path.clone(),
            source,
        };
        for entry in path.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| MountedError::Name(entry.path()))?;
            if prefix.is_empty() && name == OF_THE_FILE_SYSTEM {
                continue;
            }
            let relative = format!("{prefix}{name}");
            // Of the entry itself: a link is none of the two.
            let data = entry.metadata().map_err(failed)?;
            if data.is_dir() {
                folders.push((entry.path(), format!("{relative}/"), depth + 1));
            } else if data.is_file() {
                bytes = bytes.saturating_add(data.len());
                files.insert(relative, data.len());
            } else {
                return Err(MountedError::Kind(relative));
            }
            if files.len() > MAX_FILES {
                return Err(MountedError::TooLarge("5,000 files"));
            }
            if bytes > MAX_BYTES {
                return Err(MountedError::TooLarge("512 MiB"));
            }
        }
    }
    Ok(files)
}

fn digest_of(folder: &Path, files: &BTreeMap<String, u64>) -> Result<String, MountedError> {
    let mut digester = Digester::default();
    for (relative, bytes) in files {
        let path = folder.join(relative);
        add(&mut digester, &path, relative, *bytes).map_err(|source| MountedError::Read { path, source })?;
    }
    Ok(digester.finish())
}

fn add(digester: &mut Digester, path: &Path, relative: &str, bytes: u64) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut first = Vec::new();
    (&mut file).take(4).read_to_end(&mut first)?;
    file.rewind()?;
    digester.file(relative, is_executable(&first), bytes);
    let mut block = vec![0; 64 * 1024];
    let mut seen = 0;
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        seen += read as u64;
        digester.content(&block[..read]);
    }
    // A file that is written while it is read has no digest.
    if seen == bytes {
        Ok(())
    } else {
        Err(io::Error::other("it changed while it was read"))
    }
}

/// What the rules need to see of a text that may be too long for them.
fn head(path: &Path) -> Result<Vec<u8>, MountedError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_TEXT as u64 + 1).read_to_end(&mut text));
    read.map(|_| text).map_err(|source| MountedError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FILES: [(&str, &str); 4] = [
        ("SKILL.md", "---\nname: math\ndescription: Adds.\n---\n"),
        (
            "functions.yaml",
            "functions:\n- {name: add, max_memory_mb: 64, timeout_sec: 5}\n",
        ),
        ("functions/add.sh", "#!/bin/sh\necho 1\n"),
        ("functions.d/a", "x"),
    ];

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in FILES {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    #[test]
    fn a_mounted_skill_is_what_the_same_files_in_an_object_would_be() {
        let folder = folder();
        let files = FILES.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()));
        let expected = agentrun_core::skill::parse(&BTreeMap::from(files)).unwrap();
        assert_eq!(parse(folder.path()).unwrap(), expected);
        assert_eq!(digest(folder.path()).unwrap(), expected.digest);
    }

    // F071
    #[test]
    fn a_link_makes_a_folder_no_skill() {
        let folder = folder();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("functions/x.py")).unwrap();
        let error = parse(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("\"functions/x.py\" is neither"), "{error}");
    }

    #[test]
    fn a_folder_without_skill_md_says_what_it_has() {
        let folder = folder();
        fs::remove_file(folder.path().join("SKILL.md")).unwrap();
        fs::create_dir(folder.path().join(OF_THE_FILE_SYSTEM)).unwrap();
        let error = parse(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("has no SKILL.md; found: functions"), "{error}");
    }
}
