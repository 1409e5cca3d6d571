//! The environment of a program: built from nothing, by allow-list.

use crate::program::Heap;
use agentrun_protocol::executor::{Exec, INPUT_VARIABLE, OUTPUT_VARIABLE};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the input file in the private temp folder.
pub(crate) const INPUT_FILE: &str = "input.json";
/// Name of the output file in the private temp folder.
pub(crate) const OUTPUT_FILE: &str = "output.json";

/// Used when the image sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables of the image that programs need to find their files and speak the right language.
const ALLOWED: [&str; 20] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TERM",
    "LD_LIBRARY_PATH",
    "JAVA_HOME",
    "NODE_PATH",
    "GOROOT",
    "GEM_HOME",
    "GEM_PATH",
    "PERL5LIB",
    "R_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "MPLCONFIGDIR",
    "PLAYWRIGHT_BROWSERS_PATH",
];

/// And all whose names begin so.
const ALLOWED_PREFIXES: [&str; 3] = ["LC_", "PYTHON", "FONTCONFIG_"];

/// Never taken from our own environment, not even by name: addresses of the cluster, and our own settings.
const FORBIDDEN_PREFIXES: [&str; 2] = ["KUBERNETES_", "AGENTRUN_"];

/// The whole environment of the program of `exec`; `own` is the executor's.
pub(crate) fn of_call(
    exec: &Exec,
    own: impl IntoIterator<Item = (String, String)>,
    scratch: &Path,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::from([("PATH".to_owned(), DEFAULT_PATH.to_owned())]);
    environment.extend(
        own.into_iter()
            .filter(|(name, _)| is_inherited(name, &exec.inherit_env)),
    );
    for name in ["PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"] {
        environment.insert(name.to_owned(), "1".to_owned());
    }
    environment.extend(exec.env.clone());
    for name in ["TMPDIR", "TMP", "TEMP", "HOME"] {
        environment.insert(name.to_owned(), scratch.display().to_string());
    }
    if exec.io_files {
        for (name, file) in [(INPUT_VARIABLE, INPUT_FILE), (OUTPUT_VARIABLE, OUTPUT_FILE)] {
            environment.insert(name.to_owned(), scratch.join(file).display().to_string());
        }
    }
    environment
}

fn is_inherited(name: &str, by_name: &[String]) -> bool {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let wanted =
        ALLOWED.contains(&name) || begins(&ALLOWED_PREFIXES) || by_name.iter().any(|one| one == name);
    wanted && !begins(&FORBIDDEN_PREFIXES)
}

/// Tells a runtime whose address space cannot be limited how large its heap may be. What the task set
/// itself stays, and ours comes last, where it wins.
pub(crate) fn limit_heap(environment: &mut BTreeMap<String, String>, heap: Heap, bytes: u64) {
    let mebibytes = (bytes >> 20).max(1);
    let (name, option) = match heap {
        Heap::AddressSpace => return,
        Heap::Node => ("NODE_OPTIONS", format!("--max-old-space-size={mebibytes}")),
        Heap::Deno => ("DENO_V8_FLAGS", format!("--max-old-space-size={mebibytes}")),
        Heap::Java => ("JAVA_TOOL_OPTIONS", format!("-Xmx{mebibytes}m")),
        Heap::DotNet => ("DOTNET_GCHeapHardLimit", format!("{bytes:X}")),
    };
    let separator = if heap == Heap::Deno { "," } else { " " };
    let value = environment.entry(name.to_owned()).or_default();
    if value.is_empty() || heap == Heap::DotNet {
        *value = option;
    } else {
        value.push_str(separator);
        value.push_str(&option);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_protocol::work::{FileAccess, Limits};

    fn exec() -> Exec {
        Exec {
            id: 1,
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            access: FileAccess::None,
            tcp: false,
            limits: Limits::FUNCTION,
            output_bytes: 0,
            io_files: false,
        }
    }

    fn own() -> Vec<(String, String)> {
        let names = [
            "PATH",
            "LC_ALL",
            "KUBERNETES_PORT",
            "AGENTRUN_GATEWAY",
            "API_KEY",
            "OTHER",
            "HOME",
        ];
        names
            .map(|name| (name.to_owned(), format!("own {name}")))
            .to_vec()
    }

    // F107
    #[test]
    fn only_listed_variables_come_from_the_container() {
        let environment = of_call(&exec(), own(), Path::new("/tmp/x"));
        let names: Vec<&str> = environment.keys().map(String::as_str).collect();
        let expected = [
            "HOME",
            "LC_ALL",
            "PATH",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONUNBUFFERED",
            "TEMP",
            "TMP",
            "TMPDIR",
        ];
        assert_eq!(names, expected);
        assert_eq!(environment["PATH"], "own PATH");
        assert_eq!(environment["HOME"], "/tmp/x");
    }

    #[test]
    fn a_variable_can_be_named_but_none_of_the_cluster_or_ours() {
        let mut exec = exec();
        exec.inherit_env = ["API_KEY", "KUBERNETES_PORT", "AGENTRUN_GATEWAY"]
            .map(str::to_owned)
            .to_vec();
        let environment = of_call(&exec, own(), Path::new("/tmp/x"));
        assert_eq!(environment["API_KEY"], "own API_KEY");
        assert!(!environment.contains_key("KUBERNETES_PORT"));
        assert!(!environment.contains_key("AGENTRUN_GATEWAY"));
    }

    #[test]
    fn the_task_may_set_anything_but_its_temp_folder_and_files() {
        let mut exec = exec();
        exec.io_files = true;
        exec.env = ["PATH", "TMPDIR", "AGENTRUN_INPUT", "A"]
            .map(|name| (name.to_owned(), "task".to_owned()))
            .into();
        let environment = of_call(&exec, own(), Path::new("/tmp/x"));
        assert_eq!(environment["PATH"], "task");
        assert_eq!(environment["A"], "task");
        assert_eq!(environment["TMPDIR"], "/tmp/x");
        assert_eq!(environment["AGENTRUN_INPUT"], "/tmp/x/input.json");
        assert_eq!(environment["AGENTRUN_OUTPUT"], "/tmp/x/output.json");
    }

    #[test]
    fn a_heap_limit_is_added_to_the_options_of_the_task() {
        let mut environment = BTreeMap::from([("NODE_OPTIONS".to_owned(), "--trace-warnings".to_owned())]);
        limit_heap(&mut environment, Heap::Node, 64 << 20);
        assert_eq!(
            environment["NODE_OPTIONS"],
            "--trace-warnings --max-old-space-size=64"
        );
        limit_heap(&mut environment, Heap::Java, 64 << 20);
        assert_eq!(environment["JAVA_TOOL_OPTIONS"], "-Xmx64m");
        limit_heap(&mut environment, Heap::AddressSpace, 64 << 20);
        assert_eq!(environment.len(), 2);
    }
}
