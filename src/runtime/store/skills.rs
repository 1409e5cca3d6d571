//! Skills that travel over the channel, each in a folder of its own that user code sees read-only.

use super::Durability;
use super::files::{self, FileError, Manner, beneath};
use crate::channel::Outbox;
use crate::lock::lock;
use agentrun_protocol::work::SkillFiles;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

/// The skills that this Pod has, by folder name.
#[derive(Debug, Default)]
pub struct Skills {
    present: Mutex<HashMap<String, String>>,
}

impl Skills {
    /// Makes sure that `skill` is below `folder`, and nothing else in its place.
    pub async fn ensure(&self, folder: &Path, skill: &SkillFiles, outbox: &Outbox) -> Result<(), FileError> {
        if lock(&self.present).get(&skill.name) == Some(&skill.digest) {
            return Ok(());
        }
        let folder = beneath(folder, &skill.name)?;
        let mut wanted = HashSet::new();
        for file in &skill.files {
            let manner = Manner {
                mode: if file.executable { 0o755 } else { 0o644 },
                durability: Durability::Process,
            };
            files::ensure(&folder, &file.file, manner, outbox).await?;
            wanted.insert(folder.join(&file.file.path));
        }
        let cleaned = crate::blocking({
            let folder = folder.clone();
            move || remove_others(&folder, &wanted)
        });
        cleaned.await.map_err(|source| FileError::Write {
            path: skill.name.clone(),
            source,
        })?;
        lock(&self.present).insert(skill.name.clone(), skill.digest.clone());
        Ok(())
    }
}

/// Files of an older version must not be found by the new one.
fn remove_others(folder: &Path, wanted: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_older_version_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("functions")).unwrap();
        fs::write(path("functions/new.py"), "").unwrap();
        fs::write(path("functions/old.py"), "").unwrap();
        remove_others(folder.path(), &HashSet::from([path("functions/new.py")])).unwrap();
        assert!(path("functions/new.py").exists());
        assert!(!path("functions/old.py").exists());
    }
}
