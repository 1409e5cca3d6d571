//! Does what an agent wants done: its tools one after the other, its delegates meanwhile.

use super::desk::Desk;
use super::halt::Halt;
use super::reading;
use crate::channel::Delegates;
use agentrun_agent::{Act, ActKind, Acted, ContextMode, Outcome};
use agentrun_protocol::agent::{CallPlace, Delegation, DelegationState};
use agentrun_protocol::tool::ToolName;
use tokio::time::Instant;

impl Desk<'_> {
    /// Does all of `acts`.
    pub(super) async fn act(&mut self, acts: Vec<Act>) -> Result<(), Halt> {
        let mut delegations = Vec::new();
        let mut others = Vec::new();
        for act in acts {
            match act.kind {
                ActKind::Delegate { delegation, context } => delegations.push((delegation, context)),
                kind => others.push((act.at, kind)),
            }
        }
        let mut delegates = self.delegate(delegations).await?;
        for (at, kind) in others {
            self.bounds.check()?;
            let outcome = self.outcome(kind).await?;
            self.done(at, outcome).await?;
        }
        self.keep_session().await?;
        while let Some(delegates) = &mut delegates {
            let Some((at, state)) = self.bounds.wait(delegates.next()).await? else {
                break;
            };
            let stored = self.stored_output(&state).await?;
            self.done(at, Outcome::Delegate { state, stored }).await?;
        }
        Ok(())
    }

    async fn done(&mut self, at: CallPlace, outcome: Outcome) -> Result<(), Halt> {
        let entry = self.agent.acted(Acted { at, outcome });
        Ok(self.keep(entry).await?)
    }

    async fn outcome(&mut self, kind: ActKind) -> Result<Outcome, Halt> {
        let text = match kind {
            ActKind::Tool { tool, arguments } => return self.tool(tool, &arguments).await,
            ActKind::LoadSkill { name, path } => {
                let folders = self.job.context.settings.folders.clone();
                crate::blocking(move || Ok(reading::skill(&folders, &name, &path))).await?
            }
            ActKind::ReadStored { file } => {
                let files = self.files.clone();
                crate::blocking(move || Ok(reading::stored(&files, &file))).await?
            }
            ActKind::Delegate { .. } => Err("delegations are made together".to_owned()),
        };
        let secrets = &self.job.context.secrets;
        let text = text.map(|text| secrets.blot(&text));
        Ok(Outcome::File { text })
    }

    async fn tool(&mut self, tool: ToolName, arguments: &str) -> Result<Outcome, Halt> {
        let within = self.bounds.deadline.saturating_duration_since(Instant::now());
        let mut control = self.bounds.control.clone();
        let stopped = async move { control.stopped().await.grace };
        let call = self.toolbox.call_until(tool, arguments, within, stopped);
        Ok(Outcome::of_tool(call.await?))
    }

    /// Delegates; those that see the conversation find it below `state` before they are asked for.
    async fn delegate(
        &mut self,
        delegations: Vec<(Delegation, ContextMode)>,
    ) -> Result<Option<Delegates>, Halt> {
        let Some(turn) = delegations.first().map(|(delegation, _)| delegation.at.turn) else {
            return Ok(None);
        };
        self.bounds.check()?;
        let sees = |context: ContextMode| context == ContextMode::Snapshot;
        let mut snapshot = None;
        if delegations.iter().any(|(_, context)| sees(*context)) {
            let files = self.files.clone();
            let bytes = self.bytes_of(&self.agent.snapshot())?;
            snapshot = Some(crate::blocking(move || files.store_snapshot(turn, &bytes)).await?);
        }
        let delegations = delegations.into_iter().map(|(delegation, context)| Delegation {
            snapshot: snapshot.clone().filter(|_| sees(context)),
            ..delegation
        });
        let (id, outbox) = (self.job.assignment.id.clone(), &self.job.context.outbox);
        Ok(Some(outbox.delegate(id, turn, delegations.collect())))
    }

    /// The output of a delegate that is a file.
    async fn stored_output(&self, state: &DelegationState) -> Result<Option<String>, Halt> {
        let DelegationState::Ended(end) = state else {
            return Ok(None);
        };
        let Some(file) = end.output_ref.clone() else {
            return Ok(None);
        };
        let files = self.files.clone();
        let text = crate::blocking(move || Ok(reading::stored(&files, &file))).await?;
        let text = text.inspect_err(|error| tracing::warn!(error, "a delegate's output cannot be read"));
        Ok(text.ok())
    }
}
