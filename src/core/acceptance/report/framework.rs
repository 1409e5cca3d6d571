//! Which runner a command is.

use super::counted::{Ctest, Jest, Junit, Mocha, Nextest, NodeTest, Pytest, Rspec, Unittest, Vitest};
use super::summed::{Bats, CargoTest, GoTest, Surefire};
use super::{Reader, Reading};

/// A test runner whose summary is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Framework {
    Pytest,
    Unittest,
    CargoTest,
    Nextest,
    GoTest,
    NodeTest,
    Jest,
    Vitest,
    Mocha,
    Surefire,
    Junit,
    Ctest,
    Rspec,
    Bats,
    /// A command that calls another one, such as `npm test`: whichever of them its output shows.
    Any,
}

const ALL: [Framework; 14] = [
    Framework::Pytest,
    Framework::Unittest,
    Framework::CargoTest,
    Framework::Nextest,
    Framework::GoTest,
    Framework::NodeTest,
    Framework::Jest,
    Framework::Vitest,
    Framework::Mocha,
    Framework::Surefire,
    Framework::Junit,
    Framework::Ctest,
    Framework::Rspec,
    Framework::Bats,
];

/// Words that run the command behind them, with the words that must follow.
const WRAPPERS: [&[&str]; 18] = [
    &["env"],
    &["time"],
    &["npx"],
    &["bunx"],
    &["pnpm", "exec"],
    &["pnpm", "dlx"],
    &["yarn", "exec"],
    &["yarn", "dlx"],
    &["bundle", "exec"],
    &["uv", "run"],
    &["uvx"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["pdm", "run"],
    &["hatch", "run"],
    &["rye", "run"],
    &["conda", "run"],
    &["xvfb-run"],
];

impl Framework {
    /// The runner that the words of a command start, behind what only starts it.
    pub(in super::super) fn of(words: &[String]) -> Option<Self> {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        loop {
            let before = words.len();
            while words.first().is_some_and(|word| is_assignment(word)) {
                words.remove(0);
            }
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| words.starts_with(wrapper)) {
                words.drain(..wrapper.len());
                // Its own options, as long as they take no value.
                while words.first().is_some_and(|word| word.starts_with('-')) {
                    words.remove(0);
                }
            }
            if words.len() == before {
                break;
            }
        }
        let (program, arguments) = words.split_first()?;
        by_program(program.rsplit('/').next().unwrap_or_default(), arguments)
    }

    /// Its name, for people.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::CargoTest => "cargo test",
            Self::Nextest => "nextest",
            Self::GoTest => "go test",
            Self::NodeTest => "node:test",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Mocha => "mocha",
            Self::Surefire => "Maven Surefire",
            Self::Junit => "JUnit",
            Self::Ctest => "ctest",
            Self::Rspec => "RSpec",
            Self::Bats => "bats",
            Self::Any => "a known test runner",
        }
    }

    /// Starts to read its output.
    pub(in super::super) fn reading(self) -> Reading {
        let readers = match self {
            Self::Any => ALL.into_iter().map(Self::reader).collect(),
            one => vec![one.reader()],
        };
        Reading { readers }
    }

    fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::Pytest | Self::Any => Box::<Pytest>::default(),
            Self::Unittest => Box::<Unittest>::default(),
            Self::CargoTest => Box::<CargoTest>::default(),
            Self::Nextest => Box::<Nextest>::default(),
            Self::GoTest => Box::<GoTest>::default(),
            Self::NodeTest => Box::<NodeTest>::default(),
            Self::Jest => Box::<Jest>::default(),
            Self::Vitest => Box::<Vitest>::default(),
            Self::Mocha => Box::<Mocha>::default(),
            Self::Surefire => Box::<Surefire>::default(),
            Self::Junit => Box::<Junit>::default(),
            Self::Ctest => Box::<Ctest>::default(),
            Self::Rspec => Box::<Rspec>::default(),
            Self::Bats => Box::<Bats>::default(),
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_')
    })
}

fn by_program(program: &str, arguments: &[&str]) -> Option<Framework> {
    let is_python = program.strip_prefix("python").is_some_and(|version| {
        version
            .chars()
            .all(|character| character.is_ascii_digit() || character == '.')
    });
    let first = arguments
        .iter()
        .find(|argument| !argument.starts_with(['-', '+']))
        .copied();
    Some(match program {
        _ if is_python => match module(arguments)? {
            "pytest" => Framework::Pytest,
            "unittest" => Framework::Unittest,
            "tox" | "nox" => Framework::Any,
            _ => return None,
        },
        "pytest" | "py.test" => Framework::Pytest,
        "cargo" => match first? {
            "test" | "t" => Framework::CargoTest,
            "nextest" => Framework::Nextest,
            _ => return None,
        },
        "cargo-nextest" => Framework::Nextest,
        "go" if first == Some("test") => Framework::GoTest,
        "node" if arguments.contains(&"--test") => Framework::NodeTest,
        "jest" => Framework::Jest,
        "vitest" => Framework::Vitest,
        "mocha" => Framework::Mocha,
        "mvn" | "mvnw" => Framework::Surefire,
        "java"
            if arguments
                .iter()
                .any(|argument| argument.to_ascii_lowercase().contains("junit")) =>
        {
            Framework::Junit
        }
        "ctest" => Framework::Ctest,
        "rspec" => Framework::Rspec,
        "bats" => Framework::Bats,
        "npm" | "pnpm" | "yarn" | "bun" | "deno" | "make" | "just" | "task" | "tox" | "nox" | "invoke"
        | "rake" => Framework::Any,
        _ => return None,
    })
}

fn module<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| *argument == "-m")?;
    arguments.get(at + 1).copied()
}
