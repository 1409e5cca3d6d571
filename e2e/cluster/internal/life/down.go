package life

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentrun.dev/e2e/cluster/internal/node"
	"agentrun.dev/e2e/cluster/internal/proc"
	"agentrun.dev/e2e/cluster/internal/settings"
)

// remains says what takeDown leaves of the state folder.
type remains int

const (
	everything remains = iota // is removed
	allButLogs
)

// Down ends the cluster and removes all it made. It does nothing when there is none.
func Down(s settings.Settings, out io.Writer) error {
	guard, err := lockCluster(s)
	if err != nil {
		return err
	}
	defer guard.Remove()
	if !pathExists(s.State) {
		_, err := fmt.Fprintf(out, "down: nothing is up in %s\n", s.State)
		return err
	}
	if err := takeDown(s, everything); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "down: gone")
	return err
}

func takeDown(s settings.Settings, what remains) error {
	if !pathExists(s.State) {
		return nil
	}
	if !pathExists(s.Path(marker)) {
		if os.Remove(s.State) == nil { // it was empty
			return nil
		}
		return fmt.Errorf("%s was not made by up and is left alone: give another CLUSTER_STATE", s.State)
	}
	if err := endProcesses(s); err != nil {
		return err
	}
	if err := removeCgroups(s.Name()); err != nil {
		return err
	}
	if err := removeFolders(s); err != nil {
		return err
	}
	return removeState(s, what)
}

// endProcesses kills PID 1: with it the kernel ends everything in its pid namespace. Others that
// entered only the network or mounts, such as nsenter around a command, end with that.
func endProcesses(s settings.Settings) error {
	r, err := readRecord(s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // killed before PID 1 was on record: then it has ended by itself
	}
	if err != nil {
		return err
	}
	r.Init.Kill()
	var left []int
	gone := func() bool {
		left = r.Namespaces.Members()
		return len(left) == 0
	}
	if !eventually(20*time.Second, gone) {
		return fmt.Errorf("processes of the cluster do not end: %v", left)
	}
	return nil
}

// removeCgroups removes the cluster's folder of each hierarchy, deepest first. A group stays
// busy for a moment after its last process.
func removeCgroups(name string) error {
	hierarchies, err := node.Hierarchies("/sys/fs/cgroup")
	if err != nil {
		return err
	}
	var left []string
	gone := func() bool {
		left = nil
		for _, hierarchy := range hierarchies {
			if group := filepath.Join(hierarchy, name); !removeTree(group) {
				left = append(left, group)
			}
		}
		return len(left) == 0
	}
	if !eventually(10*time.Second, gone) {
		return fmt.Errorf("cgroups are still in use: %s", strings.Join(left, ", "))
	}
	return nil
}

// removeTree removes a folder of folders, and tells whether it is gone. Files of a cgroup are
// not removed: they go with their folder.
func removeTree(group string) bool {
	var folders []string
	_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	slices.Reverse(folders)
	for _, folder := range folders {
		_ = os.Remove(folder)
	}
	return !pathExists(group)
}

// removeFolders removes the machine's folders that `up` made, unless another cluster has a
// mount there: removing the folder would silently unmount it.
func removeFolders(s settings.Settings) error {
	text, err := os.ReadFile(s.Path("folders"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	guard, err := lockMachine()
	if err != nil {
		return err
	}
	defer guard.Release()
	for _, folder := range strings.Fields(string(text)) {
		if !proc.MountedAnywhere(folder) {
			_ = os.Remove(folder) // not when somebody has put something in it
		}
	}
	return nil
}

func removeState(s settings.Settings, what remains) error {
	mounts, err := proc.MountsBelow(s.State)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("something is mounted in the state folder, which is left alone: %s", strings.Join(mounts, ", "))
	}
	if what == everything {
		return os.RemoveAll(s.State)
	}
	entries, err := os.ReadDir(s.State)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "log" && name != marker {
			err = errors.Join(err, os.RemoveAll(s.Path(name)))
		}
	}
	return err
}

func eventually(patience time.Duration, holds func() bool) bool {
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
