//! An agent at work, and all that it works with.

use super::halt::{Bounds, Halt};
use super::journal::{Notebook, blotted};
use super::open::Opened;
use super::run::Job;
use crate::channel::{Answered, ModelQuestion};
use crate::executor::{ShellTerms, Toolbox};
use crate::store::agents::AgentFiles;
use agentrun_agent::{Agent, Entry, Finished, Speaker, Step, Transcript};
use agentrun_protocol::channel::MAX_MODEL_REQUEST;
use agentrun_protocol::chat::{ModelFailure, ModelFailureCode, ModelRequest, Role};
use agentrun_protocol::tool::Session;
use std::io;

/// An agent at work.
pub(super) struct Desk<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) bounds: Bounds<'a>,
    pub(super) agent: Agent,
    pub(super) toolbox: Toolbox,
    pub(super) files: AgentFiles,
    notebook: Notebook,
    /// What the tools had seen when it was last kept.
    known: Session,
    /// Number of the last question.
    asked: u64,
}

impl<'a> Desk<'a> {
    pub(super) fn new(job: &'a Job<'a>, bounds: Bounds<'a>, opened: Opened) -> Desk<'a> {
        let context = job.context;
        let shell = ShellTerms {
            env: job.assignment.env.clone(),
            inherit_env: job.assignment.inherit_env.clone(),
            tcp: job.assignment.tcp,
            secrets: context.secrets.clone(),
        };
        let known = opened.session.clone();
        Desk {
            job,
            bounds,
            agent: opened.agent,
            toolbox: Toolbox::new(
                context.link.clone(),
                context.settings.seen.clone(),
                shell,
                opened.session,
                opened.calls,
            ),
            files: opened.files,
            notebook: Notebook::new(opened.journal, &context.secrets),
            known,
            asked: 0,
        }
    }

    /// Works until the agent is done.
    pub(super) async fn work(&mut self) -> Result<Box<Finished>, Halt> {
        loop {
            match self.agent.next() {
                Step::Done(finished) => return Ok(finished),
                Step::Act(acts) => self.act(acts).await?,
                Step::Ask(request) => {
                    self.bounds.check()?;
                    let answer = self.ask(request).await?;
                    let entry = self.agent.answered(answer.map(|answer| *answer));
                    self.keep(entry).await?;
                }
            }
        }
    }

    /// Writes an entry down, before anything follows from it.
    pub(super) async fn keep(&self, entry: Entry) -> io::Result<()> {
        self.notebook.keep(entry).await
    }

    /// Keeps what the tools have seen, where that has changed.
    pub(super) async fn keep_session(&mut self) -> io::Result<()> {
        if *self.toolbox.session() == self.known {
            return Ok(());
        }
        self.known = self.toolbox.session().clone();
        let (files, session) = (self.files.clone(), self.known.clone());
        crate::blocking(move || files.store_session(&session)).await
    }

    async fn ask(&mut self, request: Box<ModelRequest>) -> Result<Answered, Halt> {
        let bytes = serde_json::to_vec(&request).map_err(io::Error::other)?;
        // With images it is large, and the answer takes its time.
        drop(request);
        if bytes.len() > MAX_MODEL_REQUEST {
            let found = bytes.len();
            return Ok(Err(ModelFailure {
                code: ModelFailureCode::ContextTooLong,
                message: format!(
                    "the conversation has {found} bytes, at most {MAX_MODEL_REQUEST} are sent to a model; look at \
                     fewer or smaller images"
                ),
            }));
        }
        self.asked += 1;
        let question = ModelQuestion {
            id: self.job.assignment.id.clone(),
            call: self.asked,
            request: bytes,
            spent: self.agent.spent().clone(),
        };
        self.bounds.wait(self.job.context.outbox.ask(question)).await
    }

    /// Keeps the conversation for the next run of the thread.
    pub(super) async fn keep_conversation(&self, transcript: &Transcript) -> io::Result<()> {
        if self.job.terms.role != Role::Lead {
            return Ok(());
        }
        let bytes = self.bytes_of(transcript)?;
        let files = self.files.clone();
        crate::blocking(move || files.store_conversation(&bytes)).await
    }

    /// A conversation as it is stored.
    pub(super) fn bytes_of(&self, transcript: &Transcript) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(&blotted(
            transcript,
            &self.job.context.secrets,
        )?)?)
    }

    /// The last that the agent said.
    pub(super) fn last_text(&self) -> String {
        let transcript = self.agent.snapshot();
        let mut said = transcript.said.into_iter().rev();
        let last = said.find(|said| said.by == Speaker::Assistant);
        last.map(|said| said.text).unwrap_or_default()
    }
}
