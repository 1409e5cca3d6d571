//! Which file a call starts, and how its memory can be limited.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The kernel reads this much of a script's first line.
const FIRST_LINE: u64 = 256;

/// How the memory of a program is limited. Runtimes that reserve far more address space than they use
/// do not even start under a sensible limit of it: their own option limits the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heap {
    /// `RLIMIT_AS`.
    AddressSpace,
    /// `NODE_OPTIONS`.
    Node,
    /// `DENO_V8_FLAGS`.
    Deno,
    /// `JAVA_TOOL_OPTIONS`.
    Java,
    /// `DOTNET_GCHeapHardLimit`.
    DotNet,
}

/// The file that `name` means: as it is with a `/`, else the first executable of that name in `path`.
/// `None` when no folder has it.
pub(crate) fn find(name: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(cwd.join(name));
    }
    let candidates = path.split(':').map(|folder| cwd.join(folder).join(name));
    let existing: Vec<PathBuf> = candidates.filter(|candidate| candidate.is_file()).collect();
    // One without the right to execute is remembered, so that the error can name it.
    existing
        .iter()
        .find(|candidate| is_executable(candidate))
        .or(existing.first())
        .cloned()
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Words of a script's first line after `#!`, interpreter first; empty when `file` is no script.
pub(crate) fn first_line(file: &Path) -> Vec<String> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FIRST_LINE).read_to_end(&mut start));
    if read.is_err() {
        return Vec::new();
    }
    words_of_first_line(&start)
}

fn words_of_first_line(start: &[u8]) -> Vec<String> {
    let Some(line) = start.strip_prefix(b"#!") else {
        return Vec::new();
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    text.split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// How to limit the memory of `file`, by its name or the interpreter of its first line.
pub(crate) fn heap(file: &Path) -> Heap {
    let by_name = heap_by_name(&file.to_string_lossy());
    if by_name != Heap::AddressSpace {
        return by_name;
    }
    let words = first_line(file);
    let interpreters = words.iter().take_while(|word| !word.starts_with("--"));
    interpreters
        .map(|word| heap_by_name(word))
        .find(|heap| *heap != Heap::AddressSpace)
        .unwrap_or(by_name)
}

fn heap_by_name(path: &str) -> Heap {
    match path.rsplit('/').next().unwrap_or_default() {
        "node" | "nodejs" | "npm" | "npx" | "tsx" | "ts-node" => Heap::Node,
        "deno" => Heap::Deno,
        "java" | "kotlin" | "scala" | "groovy" | "jshell" => Heap::Java,
        "dotnet" | "pwsh" => Heap::DotNet,
        _ => Heap::AddressSpace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_line_names_the_interpreter() {
        assert_eq!(
            words_of_first_line(b"#! /usr/bin/env node\nx"),
            ["/usr/bin/env", "node"]
        );
        assert_eq!(words_of_first_line(b"#!/bin/sh"), ["/bin/sh"]);
        assert!(words_of_first_line(b"\x7fELF").is_empty());
    }

    #[test]
    fn a_runtime_is_known_by_its_name_or_the_first_line_of_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        assert_eq!(heap(&script("a", "#!/usr/bin/env node\n")), Heap::Node);
        assert_eq!(
            heap(&script("b", "#!/usr/bin/env -S node --enable-x\n")),
            Heap::Node
        );
        assert_eq!(heap(&script("c", "#!/usr/bin/python3\n")), Heap::AddressSpace);
        assert_eq!(heap(Path::new("/usr/bin/java")), Heap::Java);
        assert_eq!(heap(Path::new("/nowhere")), Heap::AddressSpace);
    }

    #[test]
    fn a_name_without_slash_is_looked_up_and_prefers_what_can_be_executed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("tool"), "").unwrap();
        }
        let path = format!("{0}/one:{0}/two", folder.path().display());
        assert_eq!(
            find("tool", &path, Path::new("/")),
            Some(folder.path().join("one/tool"))
        );
        let executable: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path().join("two/tool"), executable).unwrap();
        assert_eq!(
            find("tool", &path, Path::new("/")),
            Some(folder.path().join("two/tool"))
        );
        assert_eq!(find("other", &path, Path::new("/")), None);
        assert_eq!(find("./x", &path, Path::new("/w")), Some(PathBuf::from("/w/./x")));
    }
}
