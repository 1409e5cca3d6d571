package life

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// Exec becomes a command inside the cluster's namespaces. It returns only on failure.
func Exec(s settings.Settings, command []string) error {
	arguments, environment, err := inside(s, command)
	if err != nil {
		return err
	}
	return syscall.Exec(arguments[0], arguments, environment)
}

// inside is the command line that runs a command inside, in the current folder.
func inside(s settings.Settings, command []string) (arguments, environment []string, err error) {
	r, err := running(s)
	if err != nil {
		return nil, nil, err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: install util-linux", err)
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	arguments = []string{nsenter, fmt.Sprintf("--target=%d", r.Init.PID), "--net", "--mount", "--pid", "--wdns=" + folder, "--"}
	environment = append(os.Environ(),
		"PATH="+s.SearchPath(os.Getenv("PATH")),
		"KUBECONFIG="+s.InnerKubeconfig(),
		"CONTAINERD_NAMESPACE=k8s.io",
		"XTABLES_LOCKFILE="+s.Path("xtables.lock"),
	)
	return append(arguments, command...), lastWins(environment), nil
}

// lastWins drops all but the last value of each variable: some programs take the first.
func lastWins(environment []string) []string {
	last := map[string]int{}
	for at, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		last[name] = at
	}
	var kept []string
	for at, line := range environment {
		if name, _, _ := strings.Cut(line, "="); last[name] == at {
			kept = append(kept, line)
		}
	}
	return kept
}

// LoadImages imports archives, so that Pods can name their images by tag and by digest. It
// prints NAME@sha256:DIGEST of each.
func LoadImages(s settings.Settings, archives []string, out io.Writer) error {
	r, err := running(s)
	if err != nil {
		return err
	}
	if r.Mode != node.Full {
		return fmt.Errorf("the cluster in %s is of mode %s: it runs no Pods and takes no images", s.State, r.Mode)
	}
	// A path in the cluster's own view of files: short, whatever the state folder is called.
	socket := fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", r.Init.PID)
	loader := exec.Command(s.Program("image-loader"), append([]string{socket}, archives...)...)
	loader.Stdout, loader.Stderr = out, os.Stderr
	return loader.Run()
}

// Logs prints one part's log, or the end of every part's.
func Logs(s settings.Settings, part string, out io.Writer) error {
	found, err := filepath.Glob(s.Log("*"))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no logs in %s: nothing was up there", s.State)
	}
	if part != "" {
		return oneLog(s, part, found, out)
	}
	for _, path := range found {
		if _, err := fmt.Fprintf(out, "=== %s\n%s\n", path, tail(path, 10)); err != nil {
			return err
		}
	}
	return nil
}

func oneLog(s settings.Settings, part string, found []string, out io.Writer) error {
	// Compared, not joined: a part's name must not lead elsewhere.
	for _, path := range found {
		if path != s.Log(part) {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		_, err = io.Copy(out, file)
		return err
	}
	var parts []string
	for _, path := range found {
		parts = append(parts, strings.TrimSuffix(filepath.Base(path), ".log"))
	}
	return fmt.Errorf("no part is called %q: there is %s", part, strings.Join(parts, ", "))
}

// tail is the last lines of a file, empty when it cannot be read.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
