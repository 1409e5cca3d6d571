use super::*;
use rcgen::{CertifiedKey as Made, generate_simple_self_signed};

fn made() -> Made<rcgen::KeyPair> {
    generate_simple_self_signed([agentrun_protocol::channel::TLS_NAME.to_owned()]).unwrap()
}

fn write(folder: &Path, certificate: &Made<rcgen::KeyPair>, key: &Made<rcgen::KeyPair>) {
    std::fs::write(folder.join("tls.crt"), certificate.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.signing_key.serialize_pem()).unwrap();
}

#[tokio::test]
async fn a_changed_certificate_is_served_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (made(), made());
    write(folder.path(), &first, &first);
    let certificate = Certificate::wait_for(folder.path().to_owned()).await;
    assert!(!certificate.reload().await.unwrap());
    write(folder.path(), &second, &second);
    assert!(certificate.reload().await.unwrap());
    assert_eq!(&certificate.loaded().key.cert[0], second.cert.der());
}

#[tokio::test]
async fn a_key_of_another_certificate_leaves_the_one_before_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (made(), made());
    write(folder.path(), &first, &first);
    let certificate = Certificate::wait_for(folder.path().to_owned()).await;
    write(folder.path(), &second, &first);
    assert!(matches!(
        certificate.reload().await,
        Err(CertificateError::Key(_))
    ));
    assert_eq!(&certificate.loaded().key.cert[0], first.cert.der());
}

#[tokio::test(start_paused = true)]
async fn missing_files_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let waiting = tokio::spawn(Certificate::wait_for(folder.path().to_owned()));
    tokio::time::sleep(bounds::CERTIFICATE_WAIT * 3).await;
    assert!(!waiting.is_finished());
    let first = made();
    write(folder.path(), &first, &first);
    waiting.await.unwrap();
}
