package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Try makes what a node needs of the kernel, and returns all that was refused. It is called in
// namespaces of its own and leaves nothing once they end. scratch is an empty folder.
func Try(scratch string) error {
	if err := ownMounts(); err != nil {
		return err
	}
	run := func(c command) error {
		output, err := exec.Command(c.program, c.arguments...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w: %s", c.program, strings.Join(c.arguments, " "), err, strings.TrimSpace(string(output)))
		}
		return nil
	}
	return errors.Join(
		applyNetwork(run, addressCommands(), addressSettings()),
		applyNetwork(run, filterCommands(), podSettings()),
		run(words("nft add table inet agentrun-try")),
		tryOverlay(scratch),
		tryControllers(cgroupRoot),
	)
}

func tryOverlay(scratch string) error {
	var folders []any
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		folder := filepath.Join(scratch, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", folders[:3]...)
	if err := syscall.Mount("overlay", folders[3].(string), "overlay", 0, options); err != nil {
		return fmt.Errorf("an overlay mount: %w: needs overlayfs, and a cache that is not itself on it", err)
	}
	return nil
}

// tryControllers looks for the controllers that the kubelet insists on.
func tryControllers(root string) error {
	hierarchies, err := Hierarchies(root)
	if err != nil {
		return fmt.Errorf("cgroups at %s: %w", root, err)
	}
	var there []string
	if isUnified(root) {
		text, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil {
			return err
		}
		there = strings.Fields(string(text))
	}
	for _, hierarchy := range hierarchies {
		there = append(there, strings.Split(filepath.Base(hierarchy), ",")...)
	}
	var missing []string
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !slices.Contains(there, controller) {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("cgroups at %s: no controller %s", root, strings.Join(missing, ", "))
	}
	return nil
}
