// Package check proves that a running cluster does what the product's tests rely on. It works
// through the forwarded port, as any program outside the cluster does.
package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"agentrun.dev/e2e/cluster/internal/life"
	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// one thing to prove. Later ones may rest on what earlier ones made.
type one struct {
	name  string
	prove func(*suite) error
}

// always holds for both modes and comes first.
var always = []one{
	{"all parts alive", (*suite).partsAlive},
	{"a namespace under Pod Security restricted", (*suite).makeNamespace},
	{"a privileged Pod is refused", (*suite).refusePrivileged},
	{"blocking an owner's deletion needs a right on the owner", (*suite).refuseBlockingOwner},
	{"a token is valid for its audience only", (*suite).reviewToken},
}

// onNode needs Pods. Without policies every port must be open, or closed ports would prove
// nothing later.
var onNode = []one{
	{"an image is loaded and named by digest", (*suite).loadImage},
	{"servers ready, the kubelet's probes pass", (*suite).makeServers},
	{"a locked-down Pod reports", func(s *suite) error { return s.runSandbox("open") }},
	{"without policies every port is open", says("open", allPorts("yes"))},
	{"policies are accepted", func(s *suite) error { return s.apply("policies.yaml", nil) }},
	{"a locked-down Pod reports under policies", func(s *suite) error { return s.runSandbox("closed") }},
	{"only the allowed port of the allowed peer is open", says("closed", onlyGateway())},
	{"no IPv6 around the policies", says("closed", report{"see-ipv6": "no"})},
	{"not root, no capabilities, no new privileges, a seccomp filter", says("closed", report{
		"uid": "65532", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	})},
	{"the root is read-only, /tmp is not", says("closed", report{"write-root": "no", "write-tmp": "yes"})},
	{"a claim's folders: one read-only, one writable", says("closed", report{
		"read-uploads": "yes", "write-uploads": "no", "write-workspace": "yes",
	})},
	{"an image volume is readable only", says("closed", report{"read-image": "yes", "write-image": "no"})},
	{"no API token in the Pod", says("closed", report{"see-api-token": "no"})},
	{"a Pod's own token names its ServiceAccount", (*suite).reviewPodToken},
	{"kubectl exec passes output and exit status on", (*suite).execPasses},
	{"a Job of 20 Pods completes", func(s *suite) error { return s.runJob("twenty", "true") }},
	{"an ended Pod's log stays", (*suite).endedLogStays},
	{"policies hold from the first packet of 20 Pods at once", (*suite).firstPacket},
}

var last = []one{
	{"namespace and volumes go away", (*suite).allGone},
	{"all parts still alive", (*suite).partsAlive},
}

// Run proves all that holds for the running cluster's mode, and prints a line for each.
func Run(ctx context.Context, s settings.Settings, out io.Writer) error {
	mode, err := life.Mode(s)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "agentrun-check-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	proofs := append([]one{}, always...)
	if mode == node.Full {
		proofs = append(proofs, onNode...)
	}
	proofs = append(proofs, last...)
	checked := &suite{ctx: ctx, settings: s, scratch: scratch, reports: map[string]report{}}
	failed := 0
	for _, proof := range proofs {
		if !checked.passes(proof, out) {
			failed++
		}
	}
	checked.dropNamespace()
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(proofs))
	}
	_, err = fmt.Fprintf(out, "all %d checks passed\n", len(proofs))
	return err
}

func (s *suite) passes(proof one, out io.Writer) bool {
	began := time.Now()
	err := proof.prove(s)
	if err == nil {
		_, _ = fmt.Fprintf(out, "PASS %s (%.1f s)\n", proof.name, time.Since(began).Seconds())
		return true
	}
	_, _ = fmt.Fprintf(out, "FAIL %s\n     %s\n", proof.name, strings.ReplaceAll(err.Error(), "\n", "\n     "))
	return false
}
