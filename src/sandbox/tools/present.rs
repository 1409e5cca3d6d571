//! `present_files`.

use super::arguments::PresentFiles;
use super::files::{Opened, open};
use super::media::{HEAD, media_type};
use super::{Answer, Result, ToolError};
use crate::resolve::{Area, Location, Roots};
use agentrun_protocol::result::ArtifactRef;
use agentrun_protocol::tool::Facts;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read as _};

/// The most files of one call, as many as one attempt may have artifacts.
const MAX_FILES: usize = 256;
/// The longest path in bytes as JSON writes it, as it may be of an artifact.
const MAX_PATH: usize = 1024;

pub(super) fn run(arguments: &PresentFiles, roots: &Roots) -> Result<Answer> {
    let paths = &arguments.paths;
    if paths.is_empty() || paths.len() > MAX_FILES {
        return Err(ToolError::Value {
            name: "paths",
            found: format!("{} files", paths.len()),
            allowed: format!("allowed are 1 to {MAX_FILES}"),
        });
    }
    let mut files: Vec<ArtifactRef> = Vec::new();
    for path in paths {
        let artifact = artifact(roots, output(path)?)?;
        if files.iter().all(|known| known.path != artifact.path) {
            files.push(artifact);
        }
    }
    let mut text = String::from("presented:\n");
    for file in &files {
        let path = super::names::shown(&file.path);
        let _ = writeln!(text, "{path} ({}, {} bytes)", file.media_type, file.bytes);
    }
    Ok(Answer::new(text, Facts::Presented { files }))
}

fn output(path: &str) -> Result<Location> {
    let location = if path.starts_with('/') {
        Location::parse(path)?
    } else {
        Location::in_area(Area::Outputs, path)?
    };
    let path = location.to_string();
    if *location.area() != Area::Outputs {
        return Err(ToolError::NotAnOutput { path });
    }
    let quotes = 2;
    let length = serde_json::Value::from(path).to_string().len() - quotes;
    if length > MAX_PATH {
        return Err(ToolError::Value {
            name: "paths",
            found: format!("a path of {length} bytes"),
            allowed: format!("allowed are {MAX_PATH}; move the file to a shorter one"),
        });
    }
    Ok(location)
}

fn artifact(roots: &Roots, location: Location) -> Result<ArtifactRef> {
    let opened = open(roots, location)?;
    let (head, bytes, sha256) =
        digest(&opened).map_err(|error| ToolError::system(&opened.location, error))?;
    let path = opened.location.to_string();
    Ok(ArtifactRef {
        media_type: media_type(&path, &head).to_owned(),
        path,
        bytes,
        sha256,
    })
}

/// The first bytes, the length and the digest of what is read, once.
fn digest(opened: &Opened) -> io::Result<(Vec<u8>, u64, String)> {
    let mut file = &opened.file;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head)?;
    let mut hash = Sha256::new();
    hash.update(&head);
    let mut bytes = head.len() as u64;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((head, bytes, hex::encode(hash.finalize()))),
            Ok(count) => {
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
