package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig holds the keys themselves, so that the file can be copied anywhere.
func Kubeconfig(server string, authority []byte, user Pair) string {
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: agentrun
contexts:
  - name: agentrun
    context: {cluster: agentrun, user: agentrun}
clusters:
  - name: agentrun
    cluster:
      server: %s
      certificate-authority-data: %s
users:
  - name: agentrun
    user:
      client-certificate-data: %s
      client-key-data: %s
`, server, text(authority), text(user.Certificate), text(user.Key))
}
