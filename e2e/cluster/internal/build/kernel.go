package build

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"agentrun.dev/e2e/cluster/internal/settings"
)

// TryCommand is the hidden subcommand that tries the kernel out in namespaces of its own.
const TryCommand = "__try"

// tryKernel makes what a cluster makes, in namespaces that end with the attempt, and names
// everything that the kernel refuses.
func tryKernel(s settings.Settings) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(s.Cache, ".try-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	attempt := exec.Command(self, TryCommand, scratch)
	attempt.Env = append(os.Environ(), "PATH="+s.SearchPath(os.Getenv("PATH")), "XTABLES_LOCKFILE="+scratch+"/xtables.lock")
	attempt.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	var refused bytes.Buffer
	attempt.Stdout, attempt.Stderr = &refused, &refused
	if err := attempt.Run(); err != nil {
		return fmt.Errorf("this machine cannot run a cluster (%w):\n%s", err, strings.TrimSpace(refused.String()))
	}
	return nil
}
