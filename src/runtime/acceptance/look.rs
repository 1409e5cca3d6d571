//! Looks at one path of a criterion.

use agentrun_core::acceptance::{FileFacts, Regular, Scope};
use agentrun_sandbox::resolve::{Area, Links, Location, ResolveError, Roots};
use rustix::fs::{FileType, Stat, fstat};
use std::fs::File;
use std::io::{self, Read as _};

/// Describes what lies at `path`, with at most the first `content` bytes of a regular file.
pub(super) fn look(roots: &Roots, path: &str, scope: Scope, content: u64) -> FileFacts {
    let facts = locate(path, scope).and_then(|location| {
        let stat = roots.stat(&location, Links::Inside)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        match kind {
            FileType::RegularFile if content == 0 => Ok(FileFacts::Regular(Regular {
                bytes: size(&stat),
                ..Regular::default()
            })),
            FileType::RegularFile => {
                let file = roots.open_file(&location, Links::Inside)?;
                Ok(read(&file, content).map_or_else(
                    |error| FileFacts::Unreadable(error.to_string()),
                    FileFacts::Regular,
                ))
            }
            other => Ok(FileFacts::Other(name(other))),
        }
    });
    facts.unwrap_or_else(|error| missing(&error))
}

/// The place of a path, if its scope has it.
pub(super) fn locate(path: &str, scope: Scope) -> Result<Location, ResolveError> {
    let location = Location::parse_from_workspace(path)?;
    let inside = match location.area() {
        Area::Workspace | Area::Outputs => true,
        Area::Uploads | Area::Skill(_) => scope == Scope::Schema,
    };
    if inside {
        return Ok(location);
    }
    Err(ResolveError::Outside {
        path: path.to_owned(),
    })
}

fn read(file: &File, most: u64) -> io::Result<Regular> {
    let before = fstat(file)?;
    let mut content = Vec::new();
    let mut reader = file;
    (&mut reader).take(most).read_to_end(&mut content)?;
    let after = fstat(file)?;
    let same = |stat: &Stat| {
        (
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        )
    };
    let bytes = size(&after);
    let complete = content.len() as u64 == bytes.min(most);
    Ok(Regular {
        bytes,
        content,
        changed: same(&before) != same(&after) || !complete,
    })
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

fn missing(error: &ResolveError) -> FileFacts {
    match error {
        // A file where a folder would have to be is no file there either.
        ResolveError::Missing { .. } | ResolveError::WrongKind { found: "file", .. } => FileFacts::Missing,
        ResolveError::WrongKind { found, .. } => FileFacts::Other(found),
        ResolveError::Leaves { .. } | ResolveError::Outside { .. } => FileFacts::Outside,
        ResolveError::System { source, .. } => FileFacts::Unreadable(source.to_string()),
        ResolveError::ReadOnly { .. } | ResolveError::Restless { .. } => {
            FileFacts::Unreadable(error.to_string())
        }
    }
}

fn name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "folder",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::Symlink => "link",
        _ => "device",
    }
}
