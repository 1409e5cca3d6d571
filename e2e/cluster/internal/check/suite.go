package check

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/template"
	"time"

	"agentrun.dev/e2e/cluster/internal/settings"
)

//go:embed files
var files embed.FS

const namespace = "agentrun-check"

// Security contexts that Pod Security restricted asks for, and more.
const (
	podSecurity = "{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}"
	security    = "{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"
)

// suite is what the proofs of one run share.
type suite struct {
	ctx      context.Context
	settings settings.Settings
	scratch  string
	// skills is the name by digest of the image that the sandbox mounts.
	skills string
	// reports of sandbox Pods by their names.
	reports map[string]report
}

// kubectl runs in the namespace of the check and returns what it prints.
func (s *suite) kubectl(arguments ...string) (string, error) { return s.kubectlWith("", arguments...) }

func (s *suite) kubectlWith(input string, arguments ...string) (string, error) {
	arguments = append([]string{"--kubeconfig", s.settings.Kubeconfig(), "--namespace", namespace}, arguments...)
	command := exec.CommandContext(s.ctx, s.settings.Program("kubectl"), arguments...)
	command.Stdin = strings.NewReader(input)
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// fill renders an embedded file; every file may ask for the security contexts.
func fill(name string, more map[string]any) (string, error) {
	values := map[string]any{"PodSecurity": podSecurity, "Security": security}
	for key, value := range more {
		values[key] = value
	}
	form, err := template.New(name).Option("missingkey=error").ParseFS(files, "files/"+name)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = form.Execute(&out, values)
	return out.String(), err
}

func (s *suite) apply(name string, values map[string]any) error {
	text, err := fill(name, values)
	if err != nil {
		return err
	}
	_, err = s.kubectlWith(text, "apply", "-f", "-")
	return err
}

// until polls; the last error says what is still missing.
func (s *suite) until(patience time.Duration, probe func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := probe()
		if err == nil || s.ctx.Err() != nil {
			return errors.Join(err, s.ctx.Err())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
