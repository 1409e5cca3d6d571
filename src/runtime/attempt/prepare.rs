//! All that must be there before the work starts.

use super::artifacts::{self, Listing};
use super::cache;
use super::context::Context;
use super::input::{self, InputError, Source};
use super::schemas::{SchemaError, check_input};
use crate::acceptance::Before;
use crate::store::Durability;
use crate::store::copies::{self, Places};
use crate::store::evidence::Evidence;
use crate::store::files::{self, FileError, Manner, beneath};
use crate::store::volume::{self, VolumeError};
use agentrun_api::SubTaskReason;
use agentrun_core::skill::Schemas;
use agentrun_protocol::probe::Isolation;
use agentrun_protocol::work::{Assignment, FileRef, Work};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Files that are fetched at the same time.
const FETCHES: usize = 8;

/// How long the executor may take to empty the folders that attempts share; it gives itself less.
const CLEAR_TIME: Duration = Duration::from_secs(30);

/// The work cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error(
        "the network of this Pod is not isolated: a place that must be closed answers; use a network plugin that \
         enforces NetworkPolicy, or allow it with --require-network-isolation=false"
    )]
    NotIsolated,
    #[error("what an earlier attempt left in this sandbox was not removed within {CLEAR_TIME:?}")]
    NotCleared,
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl PrepareError {
    /// The reason for the result.
    pub(super) fn reason(&self) -> SubTaskReason {
        match self {
            Self::NotIsolated => SubTaskReason::NetworkNotIsolated,
            Self::NotCleared => SubTaskReason::StartFailed,
            Self::Volume(_) | Self::File(FileError::Write { .. }) => SubTaskReason::VolumeNotWritable,
            Self::File(_) | Self::Input(_) => SubTaskReason::InputChanged,
            Self::Schema(error) => error.reason(),
        }
    }
}

/// What the work needs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) input: Source,
    /// What its end is compared with.
    pub(super) basis: Basis,
}

/// What was so before the work, and what it has to be like after it.
#[derive(Debug)]
pub(super) struct Basis {
    /// Where an earlier result of the same work is, or this one is to be kept.
    pub(super) cache: Option<cache::Entry>,
    /// `outputs` before the work.
    pub(super) before: Listing,
    /// What a function takes and gives.
    pub(super) schemas: Arc<Schemas>,
    /// The files that criteria ask to be written, before the sub-task.
    pub(super) unwritten: Before,
}

/// Writes files and skills, tests the volume, opens the input and waits for the isolation probe.
pub(super) async fn prepare(
    context: &Arc<Context>,
    assignment: &Assignment,
    evidence: &Evidence,
) -> Result<Prepared, PrepareError> {
    let (prepared, ()) = tokio::try_join!(store(context, assignment, evidence), isolated(context))?;
    Ok(prepared)
}

async fn isolated(context: &Context) -> Result<(), PrepareError> {
    let mut isolation = context.isolation.clone();
    // An error means that the probe is gone, which proves nothing.
    let found = isolation
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|found| *found);
    match found {
        Some(Isolation::Verified | Isolation::NotRequired) => Ok(()),
        Some(Isolation::NotIsolated) | None => Err(PrepareError::NotIsolated),
    }
}

async fn store(
    context: &Arc<Context>,
    assignment: &Assignment,
    evidence: &Evidence,
) -> Result<Prepared, PrepareError> {
    let folders = &context.settings.folders;
    if !context.link.cleared(CLEAR_TIME).await {
        return Err(PrepareError::NotCleared);
    }
    test_volume(context).await?;
    uploads(context, &assignment.files).await?;
    copies(context, assignment).await?;
    for skill in &assignment.skills {
        context
            .skills
            .ensure(&folders.skills, skill, &context.outbox)
            .await?;
    }
    let (context, assignment, evidence) = (Arc::clone(context), assignment.clone(), evidence.clone());
    let shared = Arc::clone(&context);
    let opened = crate::blocking(move || {
        let roots = context.settings.folders.roots();
        let before = match &assignment.work {
            Work::Agent(_) => artifacts::list_before_first(&roots, &evidence)?,
            Work::Function { .. } | Work::Command { .. } => artifacts::list(&roots)?,
        };
        let unwritten = Before::of(&assignment.acceptance, &roots, &evidence)?;
        let (mut input, schemas) = match checked_input(&context, &assignment) {
            Ok(checked) => checked,
            Err(error) => return Ok(Err(error)),
        };
        let (image, state) = (&context.settings.sandbox.image, &context.settings.folders.state);
        let basis = Basis {
            cache: cache::entry(&assignment, image, state, &roots, &mut input)?,
            before,
            schemas,
            unwritten,
        };
        Ok(Ok(Prepared { input, basis }))
    });
    opened.await.map_err(|error| volume_error(&shared, error))?
}

/// Opens the input and, where the function says what it takes, checks it.
fn checked_input(context: &Context, assignment: &Assignment) -> Result<(Source, Arc<Schemas>), PrepareError> {
    let folders = &context.settings.folders;
    let schemas = context.schemas.of(assignment, folders)?;
    let input = input::open(&assignment.work, assignment.input.as_ref(), folders)?;
    let input = match &schemas.input {
        Some(schema) => check_input(schema, input)?,
        None => input,
    };
    Ok((input, schemas))
}

async fn test_volume(context: &Context) -> Result<(), PrepareError> {
    if context.volume_tested.load(Ordering::Relaxed) {
        return Ok(());
    }
    let folders = context.settings.folders.clone();
    crate::blocking(move || volume::test(&[&folders.state, &folders.uploads()]))
        .await
        .map_err(|error| volume_error(context, error))?;
    context.volume_tested.store(true, Ordering::Relaxed);
    Ok(())
}

fn volume_error(context: &Context, error: io::Error) -> VolumeError {
    VolumeError::new(&context.settings.sandbox.volume, error)
}

async fn copies(context: &Context, assignment: &Assignment) -> Result<(), PrepareError> {
    if assignment.copies.is_empty() {
        return Ok(());
    }
    let folders = context.settings.folders.clone();
    let run = beneath(&folders.state, &format!("runs/{}", assignment.run_uid))?;
    let copies = assignment.copies.clone();
    let done = crate::blocking(move || {
        let uploads = folders.uploads();
        let places = Places {
            sources: &folders.sources,
            uploads: &uploads,
            run: &run,
        };
        Ok(copies.iter().try_for_each(|copy| copies::ensure(&places, copy)))
    });
    let outcome = done.await.map_err(|error| volume_error(context, error))?;
    Ok(outcome?)
}

async fn uploads(context: &Arc<Context>, wanted: &[FileRef]) -> Result<(), FileError> {
    let manner = Manner {
        mode: 0o644,
        durability: Durability::Node,
    };
    for several in wanted.chunks(FETCHES) {
        let mut running = JoinSet::new();
        for file in several {
            let (context, file) = (Arc::clone(context), file.clone());
            running.spawn(async move {
                files::ensure(
                    &context.settings.folders.uploads(),
                    &file,
                    manner,
                    &context.outbox,
                )
                .await
            });
        }
        while let Some(done) = running.join_next().await {
            // A task that did not come to its end was cancelled with this attempt.
            done.unwrap_or(Ok(()))?;
        }
    }
    Ok(())
}
