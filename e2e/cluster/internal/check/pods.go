package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentrun.dev/e2e/cluster/internal/life"
	"agentrun.dev/e2e/cluster/internal/oci"
)

// report is what a sandbox Pod found out, by key.
type report map[string]string

func parseReport(text string) report {
	found := report{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[key] = value
		}
	}
	return found
}

// differences from what is wanted, in the order of the keys.
func (r report) differences(want report) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if r[key] != want[key] {
			found = append(found, fmt.Sprintf("%s is %q, not %q", key, r[key], want[key]))
		}
	}
	return found
}

func allPorts(answer string) report {
	return report{
		"gateway-port": answer, "gateway-service": answer, "gateway-other-port": answer, "neighbour": answer,
		"api-by-service": answer, "api-by-node": answer, "kubelet": answer,
	}
}

func onlyGateway() report {
	want := allPorts("no")
	want["gateway-port"], want["gateway-service"] = "yes", "yes"
	return want
}

func says(pod string, want report) func(*suite) error {
	return func(s *suite) error {
		if found := s.reports[pod].differences(want); len(found) > 0 {
			return errors.New(strings.Join(found, "\n"))
		}
		return nil
	}
}

func (s *suite) loadImage() error {
	folder := filepath.Join(s.scratch, "skills")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "hello.txt"), []byte("hello\n"), 0o644); err != nil {
		return err
	}
	archive := filepath.Join(s.scratch, "skills.tar")
	digest, err := oci.Write(archive, folder, oci.Image{Reference: "localhost/check-skills:1", User: "65532"})
	if err != nil {
		return err
	}
	var printed bytes.Buffer
	if err := life.LoadImages(s.settings, []string{archive}, &printed); err != nil {
		return err
	}
	s.skills = strings.TrimSpace(printed.String())
	if want := "localhost/check-skills@" + digest; s.skills != want {
		return fmt.Errorf("load-image printed %q, not %q", s.skills, want)
	}
	return nil
}

func (s *suite) makeServers() error {
	if err := s.apply("servers.yaml", map[string]any{"Servers": []string{"gateway", "neighbour"}}); err != nil {
		return err
	}
	_, err := s.kubectl("wait", "--for=condition=Ready", "pod/gateway", "pod/neighbour", "--timeout=60s")
	return err
}

// runSandbox keeps what the Pod reports.
func (s *suite) runSandbox(name string) error {
	values := map[string]any{"Name": name, "Skills": s.skills}
	for key, pod := range map[string]string{"Gateway": "gateway", "Neighbour": "neighbour"} {
		address, err := s.kubectl("get", "pod", pod, "-o", "jsonpath={.status.podIP}")
		if err != nil {
			return err
		}
		values[key] = address
	}
	if err := s.apply("sandbox.yaml", values); err != nil {
		return err
	}
	return s.until(90*time.Second, func() error {
		text, err := s.kubectl("logs", name)
		if err != nil {
			return err
		}
		s.reports[name] = parseReport(text)
		if s.reports[name]["finished"] != "yes" {
			return fmt.Errorf("so far the Pod says %q", text)
		}
		return nil
	})
}

func (s *suite) reviewPodToken() error {
	token, err := s.kubectl("exec", "closed", "--", "cat", "/token/token")
	if err != nil {
		return err
	}
	return s.tokenHolds(token)
}

func (s *suite) execPasses() error {
	note, err := s.kubectl("exec", "closed", "--", "cat", "/data/workspace/note")
	if err != nil || note != "kept" {
		return errors.Join(err, fmt.Errorf("the note in the workspace is %q", note))
	}
	_, err = s.kubectl("exec", "closed", "--", "sh", "-c", "exit 7")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		return fmt.Errorf("a command that exits with 7 gave: %w", err)
	}
	return nil
}

func (s *suite) runJob(name, script string) error {
	if err := s.apply("job.yaml", map[string]any{"Name": name, "Script": script}); err != nil {
		return err
	}
	var failed error // ends the wait at once
	err := s.until(120*time.Second, func() error {
		counts, err := s.kubectl("get", "job", name, "-o", "jsonpath={.status.succeeded}/{.status.failed}")
		if err != nil {
			return err
		}
		succeeded, lost, _ := strings.Cut(counts, "/")
		if lost != "" && lost != "0" {
			failed = fmt.Errorf("%s Pods succeeded, %s failed", succeeded, lost)
			return nil
		}
		if succeeded != "20" {
			return fmt.Errorf("%q of 20 Pods have succeeded", succeeded)
		}
		return nil
	})
	return errors.Join(err, failed)
}

func (s *suite) endedLogStays() error {
	if err := s.runJob("speaks", "echo spoken"); err != nil {
		return err
	}
	text, err := s.kubectl("logs", "--selector=job-name=speaks", "--tail=-1")
	if err == nil && strings.Count(text, "spoken") != 20 {
		err = fmt.Errorf("the logs of 20 ended Pods are %q", text)
	}
	return err
}

// firstPacket has each Pod first try the API server, which only the Pod's own policy forbids: a
// receiver with a policy would hide that the agent does not know the new Pod yet.
func (s *suite) firstPacket() error {
	return s.runJob("first-packet", "! nc -w 2 $KUBERNETES_SERVICE_HOST 443 -e true")
}
