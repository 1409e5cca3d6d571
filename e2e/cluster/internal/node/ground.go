package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentrun.dev/e2e/cluster/internal/settings"
)

// ownMounts cuts this mount namespace off from the machine's and shows its own processes.
func ownMounts() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	const plain = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if err := syscall.Mount("proc", "/proc", "proc", plain, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// mountFolders puts folders of this cluster where the node's programs look for them. They and
// the rest are shared from here on, as Pods with mount propagation need.
func mountFolders(s settings.Settings) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	for _, folder := range Folders {
		own := s.Path("root", folder)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(own, folder, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", folder, err)
		}
		if err := syscall.Mount("none", folder, "", syscall.MS_SHARED, ""); err != nil {
			return fmt.Errorf("sharing %s: %w", folder, err)
		}
	}
	return nil
}

const cgroupRoot = "/sys/fs/cgroup"

// Hierarchies are the roots of all cgroup hierarchies of the machine: one with version 2, else
// one for each controller.
func Hierarchies(root string) ([]string, error) {
	if isUnified(root) {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() { // not the links, such as cpu to cpu,cpuacct
			found = append(found, filepath.Join(root, entry.Name()))
		}
	}
	return found, nil
}

func isUnified(root string) bool { return exists(filepath.Join(root, "cgroup.controllers"))() }

// makeCgroups makes the folder in each hierarchy that all Pods of this cluster are below.
func makeCgroups(root, name string) error {
	hierarchies, err := Hierarchies(root)
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		group := filepath.Join(hierarchy, name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			return err
		}
		if isUnified(root) {
			if err := passOn(root); err != nil {
				return err
			}
			continue
		}
		// A cpuset without processors and memory takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(hierarchy, group, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func inherit(from, to, file string) error {
	value, err := os.ReadFile(filepath.Join(from, file))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, file), value, 0o644)
}

// passOn lets children of a version 2 group have the group's controllers.
func passOn(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var enable []string
	for _, controller := range strings.Fields(string(controllers)) {
		enable = append(enable, "+"+controller)
	}
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte(strings.Join(enable, " ")), 0o644)
}
