//! Understands virtual paths, without looking at any file.

use super::ResolveError;
use std::fmt;

const USER_DATA: [&str; 2] = ["mnt", "user-data"];
const SKILLS: [&str; 2] = ["mnt", "skills"];
/// A skill is also reachable below these.
const SKILL_SHELVES: [&str; 2] = ["public", "custom"];

/// A folder that paths can be below, and never leave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// `/mnt/user-data/uploads`: written by the platform alone.
    Uploads,
    /// `/mnt/user-data/workspace`.
    Workspace,
    /// `/mnt/user-data/outputs`.
    Outputs,
    /// `/mnt/skills/NAME`: never written.
    Skill(String),
}

impl Area {
    /// Whether tools may write here.
    pub fn is_writable(&self) -> bool {
        matches!(self, Area::Workspace | Area::Outputs)
    }
}

impl fmt::Display for Area {
    /// The virtual path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Area::Uploads => f.write_str("/mnt/user-data/uploads"),
            Area::Workspace => f.write_str("/mnt/user-data/workspace"),
            Area::Outputs => f.write_str("/mnt/user-data/outputs"),
            Area::Skill(name) => write!(f, "/mnt/skills/{name}"),
        }
    }
}

/// An area, and the way from its folder to a file. The way may hold `..`, but not lead out by them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    area: Area,
    names: Vec<String>,
}

impl Location {
    /// Understands an absolute virtual path. Names are compared whole: `/mnt/user-data/workspace-x` is not
    /// below `workspace`.
    pub fn parse(path: &str) -> Result<Location, ResolveError> {
        let outside = || ResolveError::Outside {
            path: path.to_owned(),
        };
        let names = path.strip_prefix('/').ok_or_else(outside)?;
        let names: Vec<&str> = split(names).collect();
        let (area, names) = area(&names).ok_or_else(outside)?;
        Location::below(area, names, path)
    }

    /// The same, where a relative path starts at `workspace`.
    pub fn parse_from_workspace(path: &str) -> Result<Location, ResolveError> {
        if path.starts_with('/') {
            return Location::parse(path);
        }
        let names: Vec<&str> = split(path).collect();
        Location::below(Area::Workspace, &names, path)
    }

    /// The file with this relative path in an area.
    pub fn in_area(area: Area, relative: &str) -> Result<Location, ResolveError> {
        if relative.starts_with('/') {
            return Err(ResolveError::Outside {
                path: relative.to_owned(),
            });
        }
        let names: Vec<&str> = split(relative).collect();
        Location::below(area, &names, relative)
    }

    fn below(area: Area, names: &[&str], path: &str) -> Result<Location, ResolveError> {
        let mut depth = 0_usize;
        for name in names {
            let next = if *name == ".." {
                depth.checked_sub(1)
            } else {
                Some(depth + 1)
            };
            depth = next.ok_or_else(|| ResolveError::Leaves {
                path: path.to_owned(),
                area: area.to_string(),
            })?;
        }
        if path.contains('\0') {
            return Err(ResolveError::Outside {
                path: path.to_owned(),
            });
        }
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(Location { area, names })
    }

    /// The area.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// The way from the area's folder; `.` for that folder.
    pub fn relative(&self) -> String {
        if self.names.is_empty() {
            ".".to_owned()
        } else {
            self.names.join("/")
        }
    }

    /// The folder that holds it, and its name there. `None` for an area itself, and for a way that ends in `..`.
    pub(super) fn split_last(&self) -> Option<(Location, &str)> {
        let (last, rest) = self.names.split_last()?;
        let parent = Location {
            area: self.area.clone(),
            names: rest.to_vec(),
        };
        (last != "..").then_some((parent, last))
    }
}

impl fmt::Display for Location {
    /// The virtual path, without empty names and `.`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.area)?;
        self.names.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl Area {
    /// The names of the way to `target`, an absolute virtual path, if it begins in this area; see [`names_of`]. Where they
    /// lead is for whoever follows them: only that tells what a `..` behind a link leaves.
    pub(super) fn way_to(&self, target: &str) -> Option<Vec<String>> {
        let mut names = names_of(target);
        let plain: Vec<&str> = split(target).collect();
        let (found, rest) = area(&plain)?;
        if found != *self {
            return None;
        }
        let mut of_area = plain.len() - rest.len();
        while of_area > 0 {
            of_area -= usize::from(names.remove(0) != ".");
        }
        Some(names)
    }
}

/// The names of a way, with `.`, also where a slash at the end stands for one: a file before that is an error.
pub(super) fn names_of(path: &str) -> Vec<String> {
    let end = path.ends_with('/').then_some(".");
    let names = path.split('/').filter(|name| !name.is_empty());
    names.chain(end).map(str::to_owned).collect()
}

fn split(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

fn area<'a, 'b>(names: &'a [&'b str]) -> Option<(Area, &'a [&'b str])> {
    if let Some(rest) = names.strip_prefix(&USER_DATA) {
        let (first, rest) = rest.split_first()?;
        let area = match *first {
            "uploads" => Area::Uploads,
            "workspace" => Area::Workspace,
            "outputs" => Area::Outputs,
            _ => return None,
        };
        return Some((area, rest));
    }
    let rest = names.strip_prefix(&SKILLS)?;
    let (name, rest) = match rest {
        [shelf, name, rest @ ..] if SKILL_SHELVES.contains(shelf) => (name, rest),
        [name, rest @ ..] => (name, rest),
        [] => return None,
    };
    (*name != "..").then(|| (Area::Skill((*name).to_owned()), rest))
}
