package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"agentrun.dev/e2e/cluster/internal/pki"
)

// apiClient asks the API server as its administrator.
type apiClient struct {
	server string
	client *http.Client
}

func newAPIClient(server string, authority []byte, admin pki.Pair) (*apiClient, error) {
	certificate, err := tls.X509KeyPair(admin.Certificate, admin.Key)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{certificate}}}
	return &apiClient{server: server, client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

func (a *apiClient) get(path string) ([]byte, error) {
	answer, err := a.client.Get(a.server + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", path, answer.Status)
	}
	return body, err
}

// holds reads an object and asks a question about it; any error is a no.
func holds[Object any](a *apiClient, path string, question func(Object) bool) bool {
	body, err := a.get(path)
	if err != nil {
		return false
	}
	var object Object
	return json.Unmarshal(body, &object) == nil && question(object)
}

func (a *apiClient) ready() bool {
	_, err := a.get("/readyz")
	return err == nil
}

func (a *apiClient) hasDefaultAccount() bool {
	_, err := a.get("/api/v1/namespaces/default/serviceaccounts/default")
	return err == nil
}

type nodeObject struct {
	Status struct {
		Conditions []struct{ Type, Status string }
	}
}

func (a *apiClient) nodeReady() bool {
	return holds(a, "/api/v1/nodes/"+nodeName, nodeObject.ready)
}

func (n nodeObject) ready() bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

type workload struct {
	Status struct{ NumberReady, AvailableReplicas int }
}

func (a *apiClient) policiesEnforced() bool {
	return holds(a, "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-network-policies",
		func(w workload) bool { return w.Status.NumberReady > 0 })
}

func (a *apiClient) volumesProvisioned() bool {
	return holds(a, "/apis/apps/v1/namespaces/local-path-storage/deployments/local-path-provisioner",
		func(w workload) bool { return w.Status.AvailableReplicas > 0 })
}
