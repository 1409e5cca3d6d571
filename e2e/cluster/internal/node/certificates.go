package node

import (
	"fmt"
	"net"
	"os"
	"time"

	"agentrun.dev/e2e/cluster/internal/pki"
	"agentrun.dev/e2e/cluster/internal/settings"
)

const masters = "system:masters"

func subjects() map[string]pki.Subject {
	return map[string]pki.Subject{
		"apiserver": {
			User:      "kube-apiserver",
			Names:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			Addresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP), net.ParseIP(nodeIP)},
		},
		"kubelet": {
			User: "system:node:" + nodeName, Group: "system:nodes",
			Names: []string{nodeName}, Addresses: []net.IP{net.ParseIP(nodeIP)},
		},
		"admin":          {User: "admin", Group: masters},
		"kubelet-client": {User: "apiserver-kubelet-client", Group: masters},
		"controllers":    {User: "system:kube-controller-manager"},
		"scheduler":      {User: "system:kube-scheduler"},
		"proxy":          {User: "system:kube-proxy"},
	}
}

// clients get a kubeconfig.
var clients = []string{"admin", "controllers", "scheduler", "kubelet", "proxy"}

// makeCertificates writes all keys, certificates and kubeconfigs of the cluster, and returns
// the administrator's client.
func makeCertificates(s settings.Settings, now time.Time) (*apiClient, error) {
	folder := s.Path("pki")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	authority, err := pki.NewAuthority(s.Name(), now)
	if err != nil {
		return nil, err
	}
	if err := authority.Write(folder, "ca"); err != nil {
		return nil, err
	}
	pairs := map[string]pki.Pair{}
	for name, subject := range subjects() {
		pair, err := authority.Issue(subject, now)
		if err != nil {
			return nil, err
		}
		if err := pair.Write(folder, name); err != nil {
			return nil, err
		}
		pairs[name] = pair
	}
	private, public, err := pki.TokenKey()
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{s.Path("pki", "tokens.key"): private, s.Path("pki", "tokens.pub"): public}
	for _, client := range clients {
		inside := fmt.Sprintf("https://%s:%d", nodeIP, apiPort)
		texts[s.Path("pki", client+".kubeconfig")] = []byte(pki.Kubeconfig(inside, authority.Certificate, pairs[client]))
	}
	outside := fmt.Sprintf("https://127.0.0.1:%d", s.Port)
	texts[s.Kubeconfig()] = []byte(pki.Kubeconfig(outside, authority.Certificate, pairs["admin"]))
	for path, text := range texts {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
	}
	return newAPIClient(fmt.Sprintf("https://127.0.0.1:%d", apiPort), authority.Certificate, pairs["admin"])
}
