//! `agentrun crds`: the files of `crds/`, made from the types.

use std::io::Write as _;
use std::path::Path;

/// The definitions cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CrdError {
    /// A type has no schema that YAML can hold.
    #[error("a definition has no YAML form: {0}")]
    Yaml(String),
    /// The folder or stdout does not take it.
    #[error("cannot write {to}: {source}")]
    Write {
        /// The file, or `stdout`.
        to: String,
        /// What the kernel said.
        source: std::io::Error,
    },
}

/// Writes one file per definition into `folder`, or all to stdout.
pub(crate) fn write(folder: Option<&Path>) -> Result<(), CrdError> {
    for definition in &agentrun_api::crds() {
        let text = agentrun_api::crd_yaml(definition).map_err(|error| CrdError::Yaml(error.to_string()))?;
        let (to, result) = match folder {
            Some(folder) => {
                let file = folder.join(agentrun_api::crd_file_name(definition));
                (file.display().to_string(), std::fs::write(&file, text))
            }
            None => (
                "stdout".to_owned(),
                std::io::stdout()
                    .lock()
                    .write_all(format!("---\n{text}").as_bytes()),
            ),
        };
        result.map_err(|source| CrdError::Write { to, source })?;
    }
    Ok(())
}
