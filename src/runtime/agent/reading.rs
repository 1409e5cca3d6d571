//! Files that an agent reads by way of the runtime: of its skills, and what other sub-tasks have left.

use crate::chain;
use crate::settings::Folders;
use crate::store::agents::{AgentFiles, MAX_OUTPUT};
use agentrun_protocol::work::FileRef;
use agentrun_sandbox::resolve::{Links, Location};
use std::io::{self, Read as _};

/// The most bytes of a skill's file that an agent gets; the tools read further.
const MAX_SKILL_FILE: u64 = 64 * 1024;

/// The text of a skill's file, or why there is none. Blocks.
pub(super) fn skill(folders: &Folders, name: &str, path: &str) -> Result<String, String> {
    let shown = format!("/mnt/skills/{name}/{path}");
    let location = Location::parse(&shown).map_err(|error| chain(&error))?;
    let mut file = folders
        .roots()
        .open_file(&location, Links::Inside)
        .map_err(|error| chain(&error))?;
    let unreadable = |error: &io::Error| format!("{shown} cannot be read: {error}");
    let length = file.metadata().map_err(|error| unreadable(&error))?.len();
    let mut bytes = Vec::new();
    (&mut file)
        .take(MAX_SKILL_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    let whole = bytes.len() as u64 >= length;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // Cut within a character.
        Err(error) if !whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => {
            return Err(format!(
                "{shown} is no text; use it by its path from a tool of yours"
            ));
        }
    };
    if whole {
        return Ok(text.to_owned());
    }
    Ok(format!(
        "{text}\n[these are the first {MAX_SKILL_FILE} of {length} bytes; read the rest with read_file]"
    ))
}

/// What another sub-task has left, as text. Blocks.
pub(super) fn stored(files: &AgentFiles, file: &FileRef) -> Result<String, String> {
    let bytes = files.stored(file, MAX_OUTPUT).map_err(|error| chain(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(skill_file: &[u8]) -> (tempfile::TempDir, Folders) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("skill")).unwrap();
        std::fs::write(folder.path().join("skill/SKILL.md"), skill_file).unwrap();
        let folders = Folders {
            skills: folder.path().to_owned(),
            ..Folders::default()
        };
        (folder, folders)
    }

    #[test]
    fn a_long_file_is_cut_between_characters_and_says_so() {
        let text = "ü".repeat(40_000);
        let (_folder, folders) = folders(format!("x{text}").as_bytes());
        let found = skill(&folders, "skill", "SKILL.md").unwrap();
        assert!(found.starts_with("xü"));
        assert!(
            found.ends_with("ü\n[these are the first 65536 of 80001 bytes; read the rest with read_file]"),
            "{}",
            &found[found.len() - 100..]
        );
    }

    #[test]
    fn what_is_not_there_or_no_text_is_said() {
        let (folder, folders) = folders(b"\xff\xfe\x00");
        let no_text = skill(&folders, "skill", "SKILL.md").unwrap_err();
        assert!(no_text.contains("is no text"), "{no_text}");
        assert!(skill(&folders, "skill", "other.md").is_err());
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("skill/link.md")).unwrap();
        assert!(skill(&folders, "skill", "link.md").is_err());
    }
}
