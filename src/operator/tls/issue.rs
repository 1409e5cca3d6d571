//! Makes certificates.

use super::decide::Span;
use agentrun_protocol::channel::TLS_NAME;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// The certificate in PEM.
    pub(super) certificate: String,
    /// The key in PKCS#8 PEM.
    pub(super) key: String,
}

/// Makes an authority that signs itself.
pub(super) fn authority(span: Span) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = authority_params(span)?.self_signed(&key)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes a serving certificate for the gateway. `of` is the authority's own span: its name follows from it.
pub(super) fn serving(span: Span, authority_key: &str, of: Span) -> Result<Pair, rcgen::Error> {
    let issuer = Issuer::new(authority_params(of)?, KeyPair::from_pem(authority_key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![TLS_NAME.to_owned()])?;
    params.distinguished_name = name(TLS_NAME);
    params.not_before = moment(span.from)?;
    params.not_after = moment(span.to)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

fn authority_params(span: Span) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    // Two authorities of a rotation have different names.
    params.distinguished_name = name(&format!("agentrun authority {}", span.from.as_second()));
    params.not_before = moment(span.from)?;
    params.not_after = moment(span.to)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn moment(time: jiff::Timestamp) -> Result<OffsetDateTime, rcgen::Error> {
    OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| rcgen::Error::Time)
}

#[cfg(test)]
mod tests {
    use super::super::decide::{AUTHORITY_LIFE, SERVING_LIFE};
    use super::*;
    use jiff::Timestamp;
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use std::sync::Arc;
    use std::time::Duration;

    fn now() -> Timestamp {
        "2026-11-30T10:00:00Z".parse().unwrap()
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    /// Whether a runtime that trusts `roots` accepts the certificate at `seconds` from now.
    fn accepted(roots: &[&Pair], certificate: &Pair, name: &'static str, seconds: i64) -> bool {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(der(&root.certificate)).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .unwrap();
        let at = u64::try_from(now().as_second() + seconds).unwrap();
        let (name, at) = (
            ServerName::try_from(name).unwrap(),
            UnixTime::since_unix_epoch(Duration::from_secs(at)),
        );
        verifier
            .verify_server_cert(&der(&certificate.certificate), &[], &name, &[], at)
            .is_ok()
    }

    #[test]
    fn a_runtime_accepts_the_gateways_certificate_under_its_one_name_while_it_is_valid() {
        let of = Span::starting(now(), AUTHORITY_LIFE);
        let root = authority(of).unwrap();
        let certificate = serving(Span::starting(now(), SERVING_LIFE), &root.key, of).unwrap();
        assert!(accepted(&[&root], &certificate, TLS_NAME, 0));
        assert!(accepted(&[&root], &certificate, TLS_NAME, -3500));
        assert!(!accepted(&[&root], &certificate, TLS_NAME, -3700));
        assert!(!accepted(&[&root], &certificate, TLS_NAME, 91 * 24 * 3600));
        assert!(!accepted(&[&root], &certificate, "example.com", 0));
    }

    #[test]
    fn during_a_rotation_both_authorities_are_trusted() {
        let (old, new) = (
            Span::starting(now(), AUTHORITY_LIFE),
            Span::starting(now() + jiff::SignedDuration::from_secs(1), AUTHORITY_LIFE),
        );
        let (old_root, new_root) = (authority(old).unwrap(), authority(new).unwrap());
        let span = Span::starting(now(), SERVING_LIFE);
        for (root, of) in [(&old_root, old), (&new_root, new)] {
            let certificate = serving(span, &root.key, of).unwrap();
            assert!(accepted(&[&old_root, &new_root], &certificate, TLS_NAME, 0));
        }
        let certificate = serving(span, &new_root.key, new).unwrap();
        assert!(!accepted(&[&old_root], &certificate, TLS_NAME, 0));
    }
}
