//! `ls`.

use super::arguments::Ls;
use super::names::{shown, shown_path};
use super::walk::locations;
use super::{Answer, Result, ToolError};
use crate::resolve::{Links, Location, ResolveError, Roots};
use agentrun_protocol::tool::Facts;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use std::ffi::{CString, OsStr};
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Entries of the folder itself, and of each folder in it, that are shown.
const MAX_ENTRIES: usize = 500;
const MAX_INNER: usize = 50;
/// Lines in all.
const MAX_LINES: usize = 1_000;
/// Entries of one folder that are looked at; beyond, which ones are shown is up to the file system.
const MAX_READ: usize = 100_000;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(super) fn run(arguments: &Ls, roots: &Roots) -> Result<Answer> {
    let locations = locations(arguments.path.as_deref(), roots)?;
    let several = locations.len() != 1;
    let mut listing = Listing::default();
    for location in &locations {
        match roots.open_folder(location, Links::Inside) {
            Ok(folder) => listing.folder(location, &folder)?,
            Err(ResolveError::Missing { .. }) if several => {}
            Err(error) => return Err(error.into()),
        }
    }
    if locations.is_empty() {
        listing.text.push_str("[there are no skills]\n");
    }
    if listing.lines >= MAX_LINES && listing.more {
        let _ = writeln!(
            listing.text,
            "[these are the first {MAX_LINES}; use ls on one of the folders]"
        );
    }
    let facts = Facts::Found {
        shown: listing.lines as u64,
        total: listing.total,
        more: listing.more,
        paths: listing.paths,
    };
    Ok(Answer::new(listing.text, facts))
}

#[derive(Default)]
struct Listing {
    text: String,
    lines: usize,
    total: u64,
    more: bool,
    paths: Vec<String>,
}

struct Entry {
    name: CString,
    stat: Option<Stat>,
}

impl Entry {
    fn is_folder(&self) -> bool {
        self.stat
            .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn detail(&self) -> String {
        let Some(stat) = self.stat else {
            return " (cannot be looked at)".to_owned();
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => format!("  {} bytes", stat.st_size),
            FileType::Directory => "/".to_owned(),
            FileType::Symlink => " (link)".to_owned(),
            FileType::Fifo => " (pipe)".to_owned(),
            FileType::Socket => " (socket)".to_owned(),
            _ => " (device)".to_owned(),
        }
    }
}

impl Listing {
    fn folder(&mut self, location: &Location, folder: &OwnedFd) -> Result<()> {
        let _ = writeln!(self.text, "{}:", shown(&location.to_string()));
        let (entries, count) = read(folder).map_err(|error| ToolError::system(location, error))?;
        if entries.is_empty() {
            self.text.push_str("[empty]\n");
        }
        for entry in entries.iter().take(MAX_ENTRIES) {
            self.line(location, "", entry);
            if entry.is_folder() && entry.name.as_bytes() != b".git" {
                self.inner(location, folder, entry);
            }
        }
        self.rest("", count, entries.len().min(MAX_ENTRIES));
        Ok(())
    }

    /// The second level. What cannot be opened any more is shown without it.
    fn inner(&mut self, location: &Location, folder: &OwnedFd, entry: &Entry) {
        let Ok(inner) = openat(folder, &entry.name, FOLDER, Mode::empty()) else {
            return;
        };
        let Ok((entries, count)) = read(&inner) else {
            return;
        };
        let prefix = format!("{}/", shown_name(entry));
        for entry in entries.iter().take(MAX_INNER) {
            self.line(location, &prefix, entry);
        }
        self.rest(&prefix, count, entries.len().min(MAX_INNER));
    }

    fn line(&mut self, location: &Location, prefix: &str, entry: &Entry) {
        self.total += 1;
        if self.lines >= MAX_LINES {
            self.more = true;
            return;
        }
        self.lines += 1;
        let name = format!("{prefix}{}", shown_name(entry));
        let _ = writeln!(self.text, "{name}{}", entry.detail());
        self.paths
            .push(format!("{}/{name}", shown(&location.to_string())));
    }

    fn rest(&mut self, prefix: &str, count: usize, seen: usize) {
        let rest = count - seen;
        if rest > 0 {
            self.total += rest as u64;
            self.more |= count > MAX_READ;
            let least = if count > MAX_READ { "at least " } else { "" };
            let _ = writeln!(
                self.text,
                "[{least}{rest} more in ./{prefix}; use glob, or ls on that folder]"
            );
        }
    }
}

fn shown_name(entry: &Entry) -> String {
    shown_path(Path::new(OsStr::from_bytes(entry.name.as_bytes())))
}

/// Entries sorted by name, described as far as they will be shown, and how many there are.
fn read(folder: &OwnedFd) -> rustix::io::Result<(Vec<Entry>, usize)> {
    let mut names = Vec::new();
    let mut count = 0;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        count += 1;
        if count > MAX_READ {
            break;
        }
        names.push(name.to_owned());
    }
    names.sort_unstable();
    names.truncate(MAX_ENTRIES);
    let entries = names.into_iter().map(|name| Entry {
        stat: statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok(),
        name,
    });
    Ok((entries.collect(), count))
}
