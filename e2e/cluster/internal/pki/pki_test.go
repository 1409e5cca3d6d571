package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"
)

func issue(t *testing.T, subject Subject, now time.Time) (*Authority, *x509.Certificate, Pair) {
	t.Helper()
	authority, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(subject, now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return authority, certificate, pair
}

func TestAnIssuedCertificateServesItsNamesAndNoOthers(t *testing.T) {
	subject := Subject{User: "api", Group: "system:masters", Names: []string{"localhost"}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	authority, certificate, pair := issue(t, subject, time.Now())
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Certificate)
	for host, good := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.0.0.2": false} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: pool, DNSName: host})
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
	if certificate.Subject.CommonName != "api" || certificate.Subject.Organization[0] != "system:masters" {
		t.Errorf("subject is %v", certificate.Subject)
	}
	if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
		t.Errorf("key and certificate do not fit: %v", err)
	}
}

func TestACertificateEndsAfterItsLifetime(t *testing.T) {
	now := time.Now()
	_, certificate, _ := issue(t, Subject{User: "x"}, now)
	if !certificate.NotAfter.Equal(now.Add(lifetime).Truncate(time.Second).UTC()) {
		t.Fatalf("ends at %v", certificate.NotAfter)
	}
}

func TestAKubeconfigPointsToItsServer(t *testing.T) {
	text := Kubeconfig("https://127.0.0.1:1", []byte("ca"), Pair{Certificate: []byte("c"), Key: []byte("k")})
	for _, want := range []string{"server: https://127.0.0.1:1\n", "certificate-authority-data: Y2E=\n", "client-key-data: aw==\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
