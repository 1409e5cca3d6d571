//! What strangers can do to a socket.

use super::*;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const QUICK: server::Patience = server::Patience {
    head: Duration::from_millis(300),
    stall: Duration::from_millis(600),
};

/// Sends bytes and returns all that comes back until the server closes.
async fn said(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // The server may answer and close before it has all.
    let _ = socket.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = within(socket.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn floods_of_headers_are_refused_and_others_are_served() {
    let stage = Stage::new();
    let address = stage.listen(QUICK).await;
    let many = "h: v\r\n".repeat(200);
    let flood = format!("GET /health HTTP/1.1\r\n{many}\r\n");
    assert!(said(address, flood.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    let long = format!("GET /health HTTP/1.1\r\nh: {}\r\n\r\n", "x".repeat(64 * 1024));
    assert!(said(address, long.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 * 1024));
    let answer = said(address, path.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(
        said(address, b"\x16\x03\x01\x00\xa5\x01\x00\x00")
            .await
            .starts_with("HTTP/1.1 400 ")
    );
    assert_eq!(
        said(address, b"GET /health HTTP/1.1\r\nh:").await,
        "",
        "a head that does not come is not waited for"
    );
    assert_eq!(said(address, b"").await, "", "nor is a request");
    let good = said(address, b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(
        good.starts_with("HTTP/1.1 200 ") && good.ends_with("ok\n"),
        "{good}"
    );
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_read() {
    let stage = Stage::new();
    let address = stage.listen(QUICK).await;
    let head = "POST /api/tasks HTTP/1.1\r\nauthorization: Bearer lena\r\nconnection: close\r\n";
    let answer = said(
        address,
        format!("{head}content-length: 99999999999\r\n\r\n{{").as_bytes(),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n");
    let answer = said(address, chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn a_caller_that_closes_its_connection_cancels_its_call() {
    let stage = Stage::new();
    stage
        .gateway
        .change(|board| board.put_skill(crate::fixtures::skill(|_| ())));
    let address = stage.listen(server::Patience::default()).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    let call =
        b"POST /api/flow/math/add HTTP/1.1\r\nauthorization: Bearer lena\r\ncontent-length: 2\r\n\r\n{}";
    socket.write_all(call).await.unwrap();
    until(|| stage.fake.runs().len() == 1).await;
    assert_eq!(stage.fake.runs()[0]["spec"].get("cancel"), None);
    drop(socket);
    until(|| stage.fake.runs()[0]["spec"]["cancel"] == json!(true)).await;
}

#[tokio::test]
async fn tls_is_spoken_where_a_certificate_is_given() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["api.test".to_owned()]).unwrap();
    std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let certificate = crate::tls::Certificate::wait_for(folder.path().to_owned()).await;
    let tls = server::tls_config(certificate).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (router, gateway) = (router::router(Arc::clone(&stage.api)), Arc::clone(&stage.gateway));
    let stalled = stage.api.metrics.stalled.clone();
    tokio::spawn(async move { server::serve(listener, Some(tls), router, stalled, QUICK, &gateway).await });

    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("api.test").unwrap();
    let mut socket = tokio_rustls::TlsConnector::from(Arc::new(client))
        .connect(name, socket)
        .await
        .unwrap();
    socket
        .write_all(b"GET /ready HTTP/1.1\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    within(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
