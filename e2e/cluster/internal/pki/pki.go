// Package pki makes the certificates and kubeconfigs of one cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate. A test cluster lives for minutes.
const lifetime = 30 * 24 * time.Hour

// skew lets a certificate hold although some clock runs behind.
const skew = 5 * time.Minute

// Pair is a certificate with its key, both as PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Authority issues the certificates of one cluster.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Subject says for whom a certificate is. Kubernetes reads User and Group from client
// certificates; servers are checked against Names and Addresses.
type Subject struct {
	User      string
	Group     string
	Names     []string
	Addresses []net.IP
}

// NewAuthority makes a certificate authority that trusts itself.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	pair, key, err := sign(template, nil, nil, now)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, certificate: certificate, key: key}, nil
}

// Issue makes a certificate that serves as client and as server.
func (a *Authority) Issue(subject Subject, now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.User},
		DNSNames:    subject.Names,
		IPAddresses: subject.Addresses,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if subject.Group != "" {
		template.Subject.Organization = []string{subject.Group}
	}
	pair, _, err := sign(template, a.certificate, a.key, now)
	return pair, err
}

// sign fills the template in; without a parent the certificate signs itself.
func sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey, now time.Time) (Pair, *ecdsa.PrivateKey, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, nil, err
	}
	template.NotBefore, template.NotAfter = now.Add(-skew), now.Add(lifetime)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, nil, err
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: keyPEM}, key, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

// TokenKey makes the pair that signs and checks ServiceAccount tokens.
func TokenKey() (private, public []byte, err error) {
	key, private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return private, encode("PUBLIC KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Write stores the pair as NAME.crt and NAME.key, readable by root alone.
func (p Pair) Write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), p.Certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".key"), p.Key, 0o600)
}
