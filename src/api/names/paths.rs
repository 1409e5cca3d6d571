//! Paths in sandboxes and on claims.

/// Root of the user data as user code and agents see it.
pub const USER_DATA: &str = "/mnt/user-data";
/// Input files; read-only for user code.
pub const UPLOADS: &str = "/mnt/user-data/uploads";
/// Where work happens.
pub const WORKSPACE: &str = "/mnt/user-data/workspace";
/// What is delivered.
pub const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Root of the skills.
pub const SKILLS: &str = "/mnt/skills";
/// Socket on which the runtime takes the executor's connection.
pub const EXECUTOR_SOCKET: &str = "/run/agentrun/executor.sock";

/// Folder of a thread on its claim: `users/USER/threads/THREAD`.
///
/// `thread` is the run's UID for a run without a thread. Both are percent-encoded.
pub fn thread_folder(user: &str, thread: &str) -> String {
    format!("users/{}/threads/{}", encoded(user), encoded(thread))
}

/// Folder of what user code must not forge: `…/state`.
pub fn state_folder(user: &str, thread: &str) -> String {
    format!("{}/state", thread_folder(user, thread))
}

/// Folder that is mounted as `uploads`.
pub fn uploads_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/uploads", thread_folder(user, thread))
}

/// Folder that is mounted as `workspace`.
pub fn workspace_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/workspace", thread_folder(user, thread))
}

/// Folder that is mounted as `outputs`.
pub fn outputs_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/outputs", thread_folder(user, thread))
}

/// Where finished items of a `forEach` task are folded to, below the thread's `state` folder.
pub fn for_each_file(run_uid: &str, task: &str) -> String {
    format!("runs/{run_uid}/foreach/{task}.jsonl")
}

/// One path segment: everything but ASCII letters, digits, `-` and `_`, and `.` behind the first place,
/// is percent-encoded, so that two names never share a folder and none is `.` or `..`.
fn encoded(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        let plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && place > 0);
        if plain {
            segment.push(char::from(byte));
        } else {
            segment.push('%');
            segment.push_str(&format!("{byte:02X}"));
        }
    }
    segment
}
