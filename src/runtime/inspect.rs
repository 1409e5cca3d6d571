//! The life of a Pod that reads one mounted skill: it reads, reports until that is acknowledged, and ends. It runs
//! nothing of the skill.

use crate::chain;
use crate::channel::{self, Event, Outbox, TlsError};
use crate::settings::Gateway;
use crate::store::mounted;
use crate::task::Task;
use agentrun_core::skill::ParsedSkill;
use agentrun_protocol::channel::{Refusal, ToGateway};
use agentrun_protocol::exit;
use agentrun_protocol::inspection::SkillFound;
use agentrun_protocol::work::AttemptId;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// What an inspection needs to know.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Where to report.
    pub gateway: Gateway,
    /// UID and generation of the Skill.
    pub id: AttemptId,
    /// Where the skill is.
    pub folder: PathBuf,
}

/// Reads and reports until that is acknowledged, the gateway refuses us, or `shutdown` returns. Gives back the exit code.
pub async fn inspect(inspection: Inspection, shutdown: impl Future<Output = ()>) -> Result<u8, TlsError> {
    let trust = channel::trust(&inspection.gateway.authorities)?;
    let Inspection { gateway, id, folder } = inspection;
    let outbox = Outbox::default();
    let found = crate::blocking(move || Ok(read(&folder)))
        .await
        .unwrap_or_else(|error| SkillFound::Invalid {
            message: chain(&error),
        });
    tracing::info!(?found, "read");
    outbox.post(id.clone(), ToGateway::Skill { id, found });
    outbox.ready();
    let (sender, mut events) = mpsc::channel(1);
    let _channel = Task::spawn(channel::run(gateway, trust, outbox.clone(), sender));
    let refused = async {
        loop {
            match events.recv().await {
                Some(Event::Refused(Refusal::VersionSkew)) => return exit::VERSION_SKEW,
                Some(Event::Refused(_)) | None => return exit::REFUSED,
                Some(Event::Assign(_) | Event::Cancel { .. }) => {}
            }
        }
    };
    Ok(tokio::select! {
        () = outbox.drained() => exit::DONE,
        code = refused => code,
        () = shutdown => exit::DONE,
    })
}

fn read(folder: &std::path::Path) -> SkillFound {
    let ParsedSkill {
        frontmatter,
        functions,
        digest,
    } = match mounted::parse(folder) {
        Ok(parsed) => parsed,
        Err(error) => {
            return SkillFound::Invalid {
                message: chain(&error),
            };
        }
    };
    match functions.iter().map(serde_json::to_value).collect() {
        Ok(functions) => SkillFound::Valid {
            triggers: frontmatter.trigger_words(),
            allowed_tools: frontmatter.tools(),
            name: frontmatter.name,
            description: frontmatter.description,
            functions,
            digest,
        },
        Err(error) => SkillFound::Invalid {
            message: error.to_string(),
        },
    }
}
