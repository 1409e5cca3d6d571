//! The values of the Secrets that the kubelet gave to this container, for the runtime to keep out of what it writes
//! down: it cannot see them itself.

use agentrun_protocol::Blob;
use agentrun_protocol::executor::SecretPlaces;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The largest value that is told, in bytes; what is larger is data rather than a password.
const MAX_VALUE: u64 = 16 * 1024;
/// The most values that are told. With their sizes they fit one frame.
const MAX_VALUES: usize = 48;

/// The values in `places`. One that is too large, or that cannot be read, is left out.
pub(crate) fn values(places: &SecretPlaces) -> Vec<Blob> {
    let variables = places
        .env
        .iter()
        .filter_map(std::env::var_os)
        .map(std::ffi::OsString::into_encoded_bytes);
    let files = places
        .folders
        .iter()
        .flat_map(|folder| in_folder(Path::new(folder)));
    let small = |value: &Vec<u8>| value.len() as u64 <= MAX_VALUE;
    variables
        .chain(files)
        .filter(small)
        .take(MAX_VALUES)
        .map(Blob)
        .collect()
}

/// The kubelet makes links to files in a hidden folder; a key may have folders in its path.
fn in_folder(folder: &Path) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return values;
    };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b"..") {
            continue;
        }
        let path = entry.path();
        match path.metadata() {
            Ok(data) if data.is_file() => values.extend(read(&path)),
            Ok(data) if data.is_dir() => values.extend(in_folder(&path)),
            _ => {}
        }
    }
    values
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_VALUE + 1)
        .read_to_end(&mut value)
        .ok()?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn keys_are_read_as_the_kubelet_lays_them_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("..2030/sub")).unwrap();
        std::fs::write(path("..2030/password"), "one").unwrap();
        std::fs::write(path("..2030/sub/token"), "two").unwrap();
        std::fs::write(path("..2030/large"), vec![b'x'; 20_000]).unwrap();
        symlink("..2030", path("..data")).unwrap();
        for name in ["password", "sub", "large"] {
            symlink(format!("..data/{name}"), path(name)).unwrap();
        }
        let places = SecretPlaces {
            env: vec!["NOT_SET_ANYWHERE".to_owned()],
            folders: vec![folder.path().display().to_string(), "/nonexistent".to_owned()],
        };
        let mut found: Vec<_> = values(&places).into_iter().map(|value| value.0).collect();
        found.sort();
        assert_eq!(found, [b"one".to_vec(), b"two".to_vec()]);
    }
}
