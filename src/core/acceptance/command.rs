//! Decides `tests_passed:COMMAND` from the record of what a sub-task ran.
//!
//! The command is looked for in what was run, word by word. A shell script matches only where its exit code and its
//! output are the command's: it is the last thing the script does, and nothing before it could have printed.

use super::Finding;
use super::report::{Framework, Reading, Seen};

/// One thing that a sub-task ran, as the runtime recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// Program and arguments; a tool call of a shell is `sh -c SCRIPT`.
    pub argv: Vec<String>,
    /// How it ended.
    pub end: CallEnd,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// It was ended: a signal, a deadline, or the sandbox went away.
    Killed,
}

/// Reads the output of the call that a criterion is about, line by line, and decides.
#[derive(Debug)]
pub struct Judge {
    framework: Framework,
    end: CallEnd,
    reading: Reading,
}

/// The call of `calls`, oldest first, that `command` is about: the newest that matches. With it comes the judge who
/// reads its output. A finding comes instead where no output could change it.
pub fn judge_of(command: &str, calls: &[CommandRun]) -> Result<(usize, Judge), Finding> {
    let unclear =
        || Finding::unverified("the command has quotes or shell characters that cannot be compared");
    let wanted = words(command).ok_or_else(unclear)?;
    let framework = Framework::of(&wanted)
        .ok_or_else(|| Finding::unverified("it is no test command that this version can read"))?;
    let newest = calls
        .iter()
        .enumerate()
        .rev()
        .find(|(_, call)| is_run_of(&wanted, &call.argv));
    let (index, call) =
        newest.ok_or_else(|| Finding::unverified("no record of this sub-task running exactly that"))?;
    let judge = Judge {
        framework,
        end: call.end,
        reading: framework.reading(),
    };
    Ok((index, judge))
}

impl Judge {
    /// Takes the next line of the output, first all of stdout, then all of stderr. Colours do not count.
    pub fn line(&mut self, line: &str) {
        self.reading.line(line);
    }

    /// Decides. `whole` is false when not all of the output was kept.
    pub fn decide(&self, whole: bool) -> Finding {
        let name = self.framework.name();
        let seen = self.reading.seen();
        let code = match self.end {
            CallEnd::Killed => return Finding::fails("it was killed before it ended"),
            CallEnd::Exited(code) => code,
        };
        if code != 0 {
            return Finding::fails(&failed(self.framework, code, &seen));
        }
        match seen {
            Seen::Nothing => {
                Finding::unverified(&format!("exit code 0, but its output has no summary of {name}"))
            }
            Seen::Partial => {
                Finding::fails(&format!("exit code 0, but the summary of {name} is not complete"))
            }
            Seen::Counts(_) if !whole => {
                Finding::unverified("its output is too long to be kept whole, so that no count is certain")
            }
            Seen::Counts(counts) if counts.failed > 0 => Finding::fails(&counts.to_string()),
            Seen::Counts(counts) if counts.passed == 0 => {
                Finding::fails(&format!("no test passed: {counts}"))
            }
            Seen::Counts(counts) => Finding::holds(&counts.to_string()),
        }
    }
}

fn failed(framework: Framework, code: i32, seen: &Seen) -> String {
    let why = match (code, framework, seen) {
        (127, _, _) => ": the program was not found".to_owned(),
        (126, _, _) => ": the program cannot be executed".to_owned(),
        (5, Framework::Pytest | Framework::Unittest, _) => ": no test was collected".to_owned(),
        (_, _, Seen::Counts(counts)) => format!(": {counts}"),
        _ => String::new(),
    };
    format!("exit code {code}{why}")
}

/// Options that change what is printed, and neither what runs nor what counts.
const HARMLESS: [&str; 8] = [
    "-q",
    "-v",
    "-vv",
    "--quiet",
    "--verbose",
    "--no-color",
    "--color=no",
    "--color=never",
];

fn is_run_of(wanted: &[String], argv: &[String]) -> bool {
    same(wanted, argv)
        || script(argv)
            .and_then(last_command)
            .is_some_and(|last| same(wanted, &last))
}

fn same(wanted: &[String], found: &[String]) -> bool {
    let counted = |words: &[String]| -> Vec<String> {
        let counted = words.iter().filter(|word| !HARMLESS.contains(&word.as_str()));
        counted.cloned().collect()
    };
    !wanted.is_empty() && counted(wanted) == counted(found)
}

/// The script of `sh -c SCRIPT`, whatever the shell's options are.
fn script(argv: &[String]) -> Option<&str> {
    let [shell, options @ .., script] = argv else {
        return None;
    };
    let name = shell.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(name, "sh" | "bash" | "dash" | "ash" | "zsh");
    let (last, others) = options.split_last()?;
    let runs_script = is_flags(last) && last.ends_with('c');
    (is_shell && runs_script && are_options(others)).then_some(script.as_str())
}

/// Letters behind one dash.
fn is_flags(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Options of a shell that run nothing: with any other word before `-c`, that word would be the script.
fn are_options(words: &[String]) -> bool {
    let mut words = words.iter();
    let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_lowercase());
    while let Some(word) = words.next() {
        let is_option = is_long(word) || (is_flags(word) && !word.contains('c'));
        let lacks_name = word.ends_with('o') && is_flags(word) && !words.next().is_some_and(is_name);
        if !is_option || lacks_name {
            return false;
        }
    }
    true
}

/// Options without a value that only say what a shell does not do.
fn is_long(word: &str) -> bool {
    matches!(word, "--norc" | "--noprofile" | "--posix")
}

/// The words of a script's last command, if everything before it is silent and must have worked.
fn last_command(script: &str) -> Option<Vec<String>> {
    let script = script.trim_matches(|end| end == '\n' || is_blank(end));
    let mut steps: Vec<&str> = script
        .split('\n')
        .flat_map(|line| line.split("&&"))
        .map(|step| step.trim_matches(is_blank))
        .filter(|step| !step.is_empty())
        .collect();
    let last = steps.pop()?;
    // `pytest2>&1` runs a program of that name with a 2.
    let joined = last
        .strip_suffix("2>&1")
        .filter(|words| words.ends_with(is_blank));
    let last = joined.unwrap_or(last);
    let chained = script.contains("&&") && !script.contains('\n');
    let mut errexit = false;
    for step in steps {
        let step = words(step)?;
        let step: Vec<_> = step.iter().map(String::as_str).collect();
        match step.as_slice() {
            ["set", options @ ..] if is_errexit(options) => errexit = true,
            ["cd", _] if chained || errexit => {}
            _ => return None,
        }
    }
    words(last)
}

/// What a shell leaves out between words; all other white space belongs to the word beside it.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Whether `set` with these options makes a failing step end the script, and does nothing that would be seen: `+e` takes
/// it back, and `-x` prints.
fn is_errexit(options: &[&str]) -> bool {
    let mut errexit = false;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return false;
        };
        let (letters, is_named) = letters
            .strip_suffix('o')
            .map_or((letters, false), |letters| (letters, true));
        if !letters.bytes().all(|letter| matches!(letter, b'e' | b'u')) {
            return false;
        }
        errexit |= letters.contains('e');
        if is_named {
            match options.next() {
                Some(&"errexit") => errexit = true,
                Some(&("pipefail" | "nounset")) => {}
                _ => return false,
            }
        }
    }
    errexit
}

/// The words of a command without any meaning to a shell but quotes; nothing when there is more.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => word
                .get_or_insert_default()
                .push_str(&quoted(&mut characters, '\'')?),
            '"' => word
                .get_or_insert_default()
                .push_str(&quoted(&mut characters, '"')?),
            '\\' | '$' | '`' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '#'
            | '!' | '~' | '\n' | '\r' => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

fn quoted(characters: &mut std::str::Chars<'_>, quote: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match characters.next()? {
            found if found == quote => return Some(text),
            '\\' | '$' | '`' if quote == '"' => return None,
            other => text.push(other),
        }
    }
}
