//! The hostile programs of this folder, and what must come of each: `programs()` reads them.
//!
//! A program is one file, `NN-name.py` or `NN-name.sh`, that begins with comment lines: first what it tries, then
//! `key: value` lines. README.md lists the keys. Python programs find the text of `kit.py` before their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What no program may print: it found a way out.
pub const ESCAPED: &str = "ESCAPED";
/// What the kit prints when every way that a program tried was closed.
pub const HELD: &str = "held all";

/// Given to a program unless it says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
const KIT: &str = include_str!("kit.py");

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In a sandbox Pod on a real node.
    Node,
    /// Below the real executor as a child process of this machine.
    Local,
}

/// A hostile program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// File name without its ending; also a valid name of a task.
    pub name: String,
    /// What it tries.
    pub tries: String,
    /// Name of its file.
    pub file: String,
    /// All that the file holds, with the kit where it needs that.
    pub text: String,
    /// What runs such a file.
    pub interpreter: &'static str,
    /// The bound of its run time.
    pub timeout: Duration,
    /// Text that it must have printed.
    pub requires: Option<String>,
    /// Asks for egress to one neighbour; that is all that may be open then.
    pub egress: bool,
    forms: Vec<Form>,
    ends: Vec<String>,
    ends_locally: Option<Vec<String>>,
}

impl Program {
    /// Whether it makes sense there.
    pub fn has(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    /// The ends that are right, each as `Outcome/Reason`.
    pub fn ends(&self, form: Form) -> &[String] {
        match (form, &self.ends_locally) {
            (Form::Local, Some(ends)) => ends,
            _ => &self.ends,
        }
    }

    /// Says what is wrong with an end and the output that came with it.
    ///
    /// # Errors
    /// A line that names what was found and what was expected.
    pub fn judge(&self, form: Form, end: &str, output: &str) -> Result<(), String> {
        let name = &self.name;
        if let Some(line) = output.lines().find(|line| line.contains(ESCAPED)) {
            return Err(format!("{name}: {line}"));
        }
        if !self.ends(form).iter().any(|right| right == end) {
            return Err(format!(
                "{name} ended as {end}, not as {:?}:\n{output}",
                self.ends(form)
            ));
        }
        match &self.requires {
            Some(text) if !output.contains(text) => Err(format!(
                "{name} did not print {text:?}, so it did not do all that it should:\n{output}"
            )),
            _ => Ok(()),
        }
    }
}

/// All programs of this folder, by name.
///
/// # Errors
/// A line that names the file and what is wrong with it.
pub fn programs() -> Result<Vec<Program>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = BTreeMap::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !file.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
        let program = parse(&file, &text).map_err(|error| format!("{file}: {error}"))?;
        found.insert(file, program);
    }
    Ok(found.into_values().collect())
}

fn parse(file: &str, text: &str) -> Result<Program, String> {
    let (name, ending) = file.rsplit_once('.').ok_or("no ending")?;
    let (tries, mut keys) = head(text);
    let mut list = |key: &str| keys.remove(key).map(|value| split(&value, '|'));
    let ends = list("expect").ok_or("no line `expect:`")?;
    let ends_locally = list("expect-local");
    let forms = keys.remove("forms").ok_or("no line `forms:`")?;
    let forms: Result<Vec<Form>, String> = split(&forms, ' ').iter().map(|word| form(word)).collect();
    let complete = ending == "py" && text.contains("\nend()");
    let (interpreter, text) = match ending {
        "py" => ("python3", format!("{KIT}\n{text}")),
        "sh" => ("sh", text.to_owned()),
        other => return Err(format!("ending {other:?} is none of py and sh")),
    };
    let timeout = keys.remove("timeout").map(|value| seconds(&value)).transpose()?;
    let program = Program {
        name: name.to_owned(),
        tries,
        file: file.to_owned(),
        text,
        interpreter,
        timeout: timeout.unwrap_or(TIMEOUT),
        requires: keys.remove("require").or(complete.then(|| HELD.to_owned())),
        egress: keys.remove("egress").is_some(),
        forms: forms?,
        ends,
        ends_locally,
    };
    match keys.into_keys().next() {
        Some(key) => Err(format!("unknown key {key:?}")),
        None if program.tries.is_empty() => Err("no line that says what it tries".to_owned()),
        None => Ok(program),
    }
}

/// The comment lines at the start: text, and the values of `key: value` lines.
fn head(text: &str) -> (String, BTreeMap<String, String>) {
    let comments = text.lines().map_while(|line| line.strip_prefix("# "));
    let (mut tries, mut keys) = (Vec::new(), BTreeMap::new());
    for line in comments {
        match line.split_once(": ") {
            Some((key, value)) if !key.contains(' ') => drop(keys.insert(key.to_owned(), value.to_owned())),
            _ => tries.push(line),
        }
    }
    (tries.join(" "), keys)
}

fn split(value: &str, at: char) -> Vec<String> {
    value
        .split(at)
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

fn form(word: &str) -> Result<Form, String> {
    match word {
        "node" => Ok(Form::Node),
        "local" => Ok(Form::Local),
        other => Err(format!("form {other:?} is none of node and local")),
    }
}

fn seconds(value: &str) -> Result<Duration, String> {
    let number = value.strip_suffix('s').and_then(|number| number.parse().ok());
    number
        .map(Duration::from_secs)
        .ok_or(format!("timeout {value:?} is no number of seconds such as 20s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_read_and_says_what_must_come_of_it() {
        let programs = programs().unwrap();
        assert!(programs.len() >= 60, "{} programs", programs.len());
        assert!(programs.iter().all(|program| !program.forms.is_empty()));
        let local = programs.iter().filter(|program| program.has(Form::Local)).count();
        assert!(local >= 40, "{local} programs run on this machine");
    }

    #[test]
    fn a_head_is_text_and_keys() {
        let text = "# Many ways: this is text,\n# and this.\n# expect: A/B | C/D\n# forms: node\n\n# expect: no more\n";
        let program = parse("01-a.sh", text).unwrap();
        assert_eq!(program.tries, "Many ways: this is text, and this.");
        assert_eq!(program.ends(Form::Local), ["A/B", "C/D"]);
        assert!(program.has(Form::Node) && !program.has(Form::Local));
        assert_eq!(
            parse("01-a.sh", "# x\n# forms: moon\n# expect: A/B\n").unwrap_err(),
            "form \"moon\" is none of node and local"
        );
        assert_eq!(
            parse("01-a.sh", "# x\n# forms: node\n# expect: A/B\n# when: now\n").unwrap_err(),
            "unknown key \"when\""
        );
    }

    #[test]
    fn an_escape_is_worse_than_a_right_end() {
        let program = parse("01-a.sh", "# x\n# forms: node\n# expect: A/B\n# require: done\n").unwrap();
        assert!(program.judge(Form::Node, "A/B", "done").is_ok());
        assert!(program.judge(Form::Node, "A/B", "done\nESCAPED by x").is_err());
        assert!(program.judge(Form::Node, "A/B", "").is_err());
        assert!(program.judge(Form::Node, "A/C", "done").is_err());
    }
}
