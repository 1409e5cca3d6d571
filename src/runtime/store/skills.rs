//! Skills in the runtime's view: those that travel over the channel are written, each into a folder of its own that
//! user code sees read-only; those that are mounts are compared with their digest.

use super::Durability;
use super::files::{self, FileError, Manner, beneath};
use super::mounted;
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
        if skill.mounted {
            compare(&folder, skill).await?;
            lock(&self.present).insert(skill.name.clone(), skill.digest.clone());
            return Ok(());
        }
        // Before any is written: half a skill is none.
        for file in &skill.files {
            beneath(&folder, &file.file.path)?;
        }
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

/// A mount is what the run was admitted with, or nothing runs from it.
async fn compare(folder: &Path, skill: &SkillFiles) -> Result<(), FileError> {
    let path = folder.to_owned();
    let found = crate::blocking(move || mounted::digest(&path).map_err(io::Error::other)).await;
    let found = found.map_err(|source| FileError::Mounted {
        skill: skill.name.clone(),
        source,
    })?;
    if found == skill.digest {
        return Ok(());
    }
    Err(FileError::Digest {
        path: format!("skill {}", skill.name),
        expected: skill.digest.clone(),
        found,
    })
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
    use agentrun_protocol::work::{FileRef, SkillFile};
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_mounted_skill_of_another_digest_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("math")).unwrap();
        fs::write(folder.path().join("math/SKILL.md"), "x").unwrap();
        let skill = |digest: String| SkillFiles {
            name: "math".to_owned(),
            digest,
            files: Vec::new(),
            mounted: true,
        };
        let (skills, outbox) = (Skills::default(), Outbox::default());
        let changed = skills
            .ensure(folder.path(), &skill("sha256:aa".to_owned()), &outbox)
            .await;
        assert!(matches!(changed, Err(FileError::Digest { .. })), "{changed:?}");
        let digest = mounted::digest(&folder.path().join("math")).unwrap();
        skills
            .ensure(folder.path(), &skill(digest), &outbox)
            .await
            .unwrap();
        assert!(folder.path().join("math/SKILL.md").exists());
    }

    // F071
    #[tokio::test]
    async fn a_skill_with_a_file_outside_of_its_folder_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str| SkillFile {
            file: FileRef {
                path: path.to_owned(),
                bytes: 0,
                sha256: crate::store::sha256_of(b""),
            },
            executable: false,
        };
        for outside in ["../x", "/x", "a/../../x"] {
            let skill = SkillFiles {
                name: "math".to_owned(),
                digest: "sha256:aa".to_owned(),
                files: vec![file("SKILL.md"), file(outside)],
                mounted: false,
            };
            let (skills, outbox) = (Skills::default(), Outbox::default());
            let ensuring = skills.ensure(folder.path(), &skill, &outbox);
            let refused = timeout(Duration::from_secs(5), ensuring).await;
            let refused = refused.expect("a content is asked for, which nobody gives");
            assert!(refused.is_err(), "{outside}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

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
