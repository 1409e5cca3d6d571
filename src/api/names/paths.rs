//! Paths in sandboxes and on claims.

/// Root of the user data as user code and agents see it.
pub const USER_DATA: &str = "/mnt/user-data";
/// Input files; read-only for user code.
pub const UPLOADS: &str = "/mnt/user-data/uploads";
/// Where work happens.
pub const WORKSPACE: &str = "/mnt/user-data/workspace";
/// What is delivered.
pub const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Root of the skills, one folder each.
pub const SKILLS: &str = "/mnt/skills";
/// The executor, which is in every sandbox.
pub const EXECUTOR: &str = "/opt/agentrun/agentrun-sandbox";
/// Folder of a thread on its claim: `users/USER/threads/THREAD`.
///
/// `thread` is the run's UID for a run without a thread. Both are percent-encoded.
pub fn thread_folder(user: &str, thread: &str) -> String {
    format!("users/{}/threads/{}", encoded(user), encoded(thread))
}

/// Folder of what user code must not forge, on the claim.
pub fn state_folder(user: &str, thread: &str) -> String {
    format!("{}/state", thread_folder(user, thread))
}

/// Folder that is mounted as [`UPLOADS`], on the claim.
pub fn uploads_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/uploads", thread_folder(user, thread))
}

/// Folder that is mounted as [`WORKSPACE`], on the claim.
pub fn workspace_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/workspace", thread_folder(user, thread))
}

/// Folder that is mounted as [`OUTPUTS`], on the claim.
pub fn outputs_folder(user: &str, thread: &str) -> String {
    format!("{}/user-data/outputs", thread_folder(user, thread))
}

/// Folder of a run's own records, below the thread's `state` folder.
pub fn run_folder(run_uid: &str) -> String {
    format!("runs/{run_uid}")
}

/// Where the runtime keeps a run's numbered events, below the thread's `state` folder.
pub fn events_folder(run_uid: &str) -> String {
    format!("runs/{run_uid}/events")
}

/// Where finished items of a `forEach` task are folded to, below the thread's `state` folder.
pub fn for_each_file(run_uid: &str, task: &str) -> String {
    format!("runs/{run_uid}/foreach/{task}.jsonl")
}

/// `name` as one path segment. Everything but ASCII letters, digits, `-`, `_` and a `.` behind the first place is
/// percent-encoded, so that two names never share a folder, and none is `.`, `..` or hidden.
fn encoded(name: &str) -> String {
    name.bytes()
        .enumerate()
        .map(|(place, byte)| segment(place, byte))
        .collect()
}

fn segment(place: usize, byte: u8) -> String {
    let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && place > 0);
    if plain {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_folder_for_state_and_one_for_user_data() {
        assert_eq!(
            state_folder("lena", "titanic-q3"),
            "users/lena/threads/titanic-q3/state"
        );
        assert_eq!(
            uploads_folder("lena", "t"),
            "users/lena/threads/t/user-data/uploads"
        );
        assert_eq!(
            workspace_folder("lena", "t"),
            "users/lena/threads/t/user-data/workspace"
        );
        assert_eq!(
            outputs_folder("lena", "t"),
            "users/lena/threads/t/user-data/outputs"
        );
        assert_eq!(for_each_file("u-1", "parse"), "runs/u-1/foreach/parse.jsonl");
    }

    #[test]
    fn no_name_of_a_user_leaves_its_folder() {
        for (name, folder) in [
            ("..", "users/%2E./threads/t"),
            (".", "users/%2E/threads/t"),
            ("a/../b", "users/a%2F..%2Fb/threads/t"),
            ("a%2Fb", "users/a%252Fb/threads/t"),
            ("me@example.com", "users/me%40example.com/threads/t"),
            ("ä", "users/%C3%A4/threads/t"),
        ] {
            assert_eq!(thread_folder(name, "t"), folder);
        }
    }
}
